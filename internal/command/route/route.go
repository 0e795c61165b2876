package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/wire"
)

// A Route is a pool of a run: the lanes that take the lines of one model, of one pool of the file.
type Route struct {
	Name    string
	Pool    *settings.PoolSpec
	Model   string         // of the lines
	Lanes   []OnRoute      // in the order of their tiers
	tiers   [][]string     // of the machine's lanes; none is empty
	weights map[string]int // by machine lane, where the file has one
}

// OnRoute is a lane on a route.
type OnRoute struct {
	Spec    *settings.LaneSpec
	Word    string // its own word for the model
	Machine string // its name in the run
	Tier    int    // in the pool of the file, from 0
}

// Fallback reports whether a lane of the run is in a later tier of the route.
func (r *Route) Fallback(machine string) bool {
	for i := range r.Lanes {
		if r.Lanes[i].Machine == machine {
			return r.Lanes[i].Tier > 0
		}
	}
	return false
}

// Weight returns the weight of a lane of the run; 0: no lane of the route has one. A lane without one next to such lanes
// has 1.
func (r *Route) Weight(machine string) int {
	if len(r.weights) == 0 {
		return 0
	}
	return max(1, r.weights[machine])
}

// Spec returns the first lane of the file behind a lane of the run; nil if the route has none.
func (r *Route) Spec(machine string) *OnRoute {
	for i := range r.Lanes {
		if r.Lanes[i].Machine == machine {
			return &r.Lanes[i]
		}
	}
	return nil
}

// Config returns the settings of the lane in a run.
func (l *OnRoute) Config() (batch.LaneConfig, error) {
	c, err := l.Spec.Config()
	c.Account = l.Spec.Fate
	return c, err
}

// Price returns the lane's price for lines of a model, and its source; false: it is not known.
func (l *OnRoute) Price(model string) (p price.Price, source string, known bool) {
	if p, source, known = l.Spec.Flags.Known.Of(l.Word); !known {
		return l.Spec.Flags.Known.Of(model) // a deployment has a name of its own
	}
	return p, source, known
}

// Reads makes a reader one of lines for the lanes of the table.
func (t *Table) Reads(c *prompts.Config) {
	c.Serves, c.Takes = t.Serves(), t.Takes
	if c.DefaultModel == "" && t.fleet.Lanes[0].Flags.Provider == settings.ProviderSim {
		c.DefaultModel = settings.SimDefaultModel
	}
}

// set is a set of lanes, by their places in the file.
type set [(settings.MostLanes + 63) / 64]uint64

func (s *set) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s *set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// key tells routes apart.
type key struct {
	pool  int
	model string
	lanes set
}

// kind tells lines apart that have the same lanes, but for what their bodies say.
type kind struct{ endpoint, model string }

// choice holds the lanes for a kind of line.
type choice struct {
	whole, asItIs *Route // of all lanes, and of those that need no translation; nil: there is none
	translating   []int  // the lanes of whole that are not of asItIs
	why           string // there is no lane: why
}

// mostRoutes bounds the models of an input, as the lanes of each are known before the first call.
const mostRoutes = 10_000

// mostChoices bounds what a table remembers: a client of a server may name any number of models.
const mostChoices = 4 * mostRoutes

// A Table knows the routes of a run. One goroutine fills it while the input is checked. From
// [Table.Close] on any number of them may use it.
type Table struct {
	fleet     *settings.Fleet
	elsewhere bool // a line that some lanes cannot take goes to the others
	choices   map[kind]*choice
	routes    map[key]*Route
	names     map[string]*Route
	order     []*Route
	takes     []func(*prompts.Request) error // by lane
	served    [][]string
	closed    bool

	unroutable map[string]int // lines that no lane takes, by why
}

// New returns an empty table for a run with these flags. Their fleet must not be nil.
func New(flags *settings.Flags) *Table {
	t := &Table{
		fleet: flags.Fleet, elsewhere: flags.GoesElsewhere(),
		choices: map[kind]*choice{}, routes: map[key]*Route{}, names: map[string]*Route{}, unroutable: map[string]int{},
	}
	for i := range t.fleet.Lanes {
		f := t.fleet.Lanes[i].Flags
		t.takes = append(t.takes, f.TakesLine())
		t.served = append(t.served, wire.Served(f.Dialect, f.Vendor.Serves...))
	}
	return t
}

// Serves lists the endpoints that some lane takes.
func (t *Table) Serves() (all []string) {
	for i := range t.fleet.Lanes {
		all = append(all, t.fleet.Lanes[i].Flags.Serves()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Takes returns an error if a lane of the line's pool cannot take it; nil if the line has a route. A line
// that no lane takes at all is only counted: [Table.Close] reports all of them at once.
func (t *Table) Takes(q *prompts.Request) error {
	c := t.choiceFor(q)
	if c.why != "" && !t.closed {
		t.unroutable[c.why]++
		return nil
	}
	_, err := t.routeFor(c, q)
	return err
}

// Of returns the route of a line that Takes has let pass; nil for another.
func (t *Table) Of(q *prompts.Request) *Route {
	r, _ := t.routeFor(t.choiceFor(q), q)
	return r
}

// Find returns the route of a line, or why no lane takes it. It counts no line.
func (t *Table) Find(q *prompts.Request) (*Route, error) { return t.routeFor(t.choiceFor(q), q) }

// Native returns the route for requests that nobody translates, in the form of an endpoint. Its error says
// why no lane takes them.
func (t *Table) Native(endpoint, model string) (*Route, error) {
	c := t.choiceFor(&prompts.Request{Endpoint: endpoint, Model: model})
	switch {
	case c.why != "":
		return nil, errors.New(c.why)
	case c.asItIs == nil:
		return nil, fmt.Errorf("no lane of pool %s takes %s as it is", c.whole.Pool.Name, endpoint)
	}
	return c.asItIs, nil
}

// routeFor returns the route for a line of this choice. It is the one without translation if a lane cannot
// translate the line and the user wants it to go elsewhere.
func (t *Table) routeFor(lanes *choice, q *prompts.Request) (*Route, error) {
	if lanes.why != "" {
		return nil, errors.New(lanes.why)
	}
	for _, lane := range lanes.translating {
		err := t.checkTranslatable(lane, q)
		switch {
		case err == nil:
		case t.elsewhere && lanes.asItIs != nil:
			return lanes.asItIs, nil
		default:
			return nil, err
		}
	}
	return lanes.whole, nil
}

// checkTranslatable returns an error if a lane cannot take the line in its dialect.
func (t *Table) checkTranslatable(lane int, q *prompts.Request) error {
	request := *q
	request.Model, _ = t.fleet.Lanes[lane].Serves(q.Model)
	err := t.takes[lane](&request)
	if why := new(provider.Untranslatable); errors.As(err, &why) {
		why.Lane = t.fleet.Lanes[lane].Name
	}
	return err
}

// choiceFor returns the lanes for lines like this one. A closed table adds no route.
func (t *Table) choiceFor(request *prompts.Request) *choice {
	lineKind := kind{request.Endpoint, request.Model}
	if lanes := t.choices[lineKind]; lanes != nil {
		return lanes
	}
	if t.closed {
		return &choice{why: fmt.Sprintf("model %q was not known when the run began: name it in models of a lane or in lines of a pool, or read the input from a file", settings.Clipped(request.Model))}
	}
	lanes := t.choose(request.Endpoint, request.Model)
	if len(t.choices) < mostChoices {
		t.choices[lineKind] = lanes
	}
	return lanes
}

// choose finds the lanes for lines of a model and an endpoint, or the reason why there are none.
func (t *Table) choose(endpoint, model string) *choice {
	pools := t.fleet.UsedPools()
	poolIndex := slices.IndexFunc(pools, func(p settings.PoolSpec) bool { return p.Takes(model, endpoint) })
	if poolIndex < 0 {
		return &choice{why: fmt.Sprintf("no pool takes model %q%s", settings.Clipped(model), forEndpoint(endpoint))}
	}
	if len(t.order) >= mostRoutes {
		return &choice{why: fmt.Sprintf("the input has more than %s models", words.Thousands(mostRoutes))}
	}
	pool, chosen := &pools[poolIndex], &choice{}
	var whole, asItIs set
	isServed := false
	for _, name := range slices.Concat(pool.Tiers...) {
		lane := slices.IndexFunc(t.fleet.Lanes, func(l settings.LaneSpec) bool { return l.Name == name })
		flags := t.fleet.Lanes[lane].Flags
		if _, serves := t.fleet.Lanes[lane].Serves(model); !serves {
			continue
		}
		isServed = true
		switch {
		case slices.Contains(t.served[lane], endpoint) && slices.Contains(flags.Serves(), endpoint):
			whole.add(lane)
			asItIs.add(lane)
		case slices.Contains(wire.Translates(flags.Dialect), endpoint):
			whole.add(lane)
			chosen.translating = append(chosen.translating, lane)
		}
	}
	switch none := (set{}); {
	case !isServed:
		chosen.why = fmt.Sprintf("no lane of pool %s serves model %q", pool.Name, settings.Clipped(model))
	case whole == none:
		chosen.why = fmt.Sprintf("no lane of pool %s has %s", pool.Name, endpoint)
	default:
		chosen.whole = t.routeOf(key{poolIndex, model, whole}, pool)
		if asItIs != none {
			chosen.asItIs = t.routeOf(key{poolIndex, model, asItIs}, pool)
		}
		if endpoint == prompts.Embeddings {
			chosen.why = chosen.whole.checkComparable()
		}
	}
	return chosen
}

// forEndpoint names an endpoint that is not the usual one.
func forEndpoint(endpoint string) string {
	if endpoint == prompts.ChatCompletions {
		return ""
	}
	return " for " + endpoint
}

// routeOf returns the route of a set of lanes. The first call for a set adds the route.
func (t *Table) routeOf(routeKey key, pool *settings.PoolSpec) *Route {
	if route := t.routes[routeKey]; route != nil {
		return route
	}
	route := &Route{Name: pool.Name + "/" + routeKey.model, Pool: pool, Model: routeKey.model, weights: map[string]int{}}
	for n := 2; t.names[route.Name] != nil; n++ {
		route.Name = fmt.Sprintf("%s/%s/%d", pool.Name, routeKey.model, n)
	}
	for tier, names := range pool.Tiers {
		var machines []string
		for _, name := range names {
			i := slices.IndexFunc(t.fleet.Lanes, func(l settings.LaneSpec) bool { return l.Name == name })
			if !routeKey.lanes.has(i) {
				continue
			}
			spec := &t.fleet.Lanes[i]
			word, _ := spec.Serves(routeKey.model)
			machine := spec.Machine(word)
			route.Lanes = append(route.Lanes, OnRoute{Spec: spec, Word: word, Machine: machine, Tier: tier})
			if !slices.Contains(machines, machine) {
				machines = append(machines, machine)
			}
			if spec.Weight > 0 {
				route.weights[machine] = spec.Weight
			}
		}
		if len(machines) > 0 {
			route.tiers = append(route.tiers, machines)
		}
	}
	t.routes[routeKey], t.names[route.Name] = route, route
	t.order = append(t.order, route)
	return route
}

// checkComparable describes two lanes whose vectors cannot be compared; it returns "" if all are of one
// model.
func (r *Route) checkComparable() string {
	first := &r.Lanes[0]
	for i := range r.Lanes {
		lane := &r.Lanes[i]
		if firstModel, model := cmp.Or(first.Spec.SameAs, first.Word), cmp.Or(lane.Spec.SameAs, lane.Word); firstModel != model {
			return fmt.Sprintf("pool %s: vectors of %s (lane %s) and of %s (lane %s) cannot be compared: give each a pool, or add the same same-as to both if they are one model",
				r.Pool.Name, firstModel, first.Spec.Name, model, lane.Spec.Name)
		}
	}
	return ""
}

// Foresee makes the routes for all models that are known without the input, for an input that can be read
// only once.
func (t *Table) Foresee(model string) error {
	models := map[string]bool{}
	if model != "" {
		models[model] = true
	}
	for i := range t.fleet.Lanes {
		for word := range t.fleet.Lanes[i].Models {
			models[word] = true
		}
	}
	for _, p := range t.fleet.Pools {
		for _, word := range p.Models {
			if !strings.Contains(word, "*") {
				models[word] = true
			}
		}
	}
	if len(models) == 0 {
		return errors.New("its models are not known before it is read, and a run over several lanes needs them: name them with --model, in models of a lane, or in lines of a pool")
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		for _, endpoint := range t.Serves() {
			k := kind{endpoint, model}
			t.choices[k] = t.choose(endpoint, model)
		}
	}
	return nil
}

// Close ends the filling of the table. It returns an error about the lines that no lane takes.
func (t *Table) Close() error {
	t.closed = true
	if len(t.unroutable) == 0 {
		return nil
	}
	const listed = 5 // lines on a terminal, of what is often one slip
	var texts []string
	for _, why := range slices.Sorted(maps.Keys(t.unroutable)) {
		if len(texts) == listed {
			texts = append(texts, fmt.Sprintf("and %d more like these", len(t.unroutable)-listed))
			break
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", why, words.Count(t.unroutable[why], "line")))
	}
	return errors.New(strings.Join(texts, "; "))
}

// Dearest returns the cost of so many tokens on the dearest lane of a model. It is false if a lane has no
// known price, or if the model has no lane.
func (t *Table) Dearest(model string, input, output float64, at time.Time) (usd float64, known bool) {
	for _, r := range t.order {
		if r.Model != model {
			continue
		}
		for i := range r.Lanes {
			p, _, priced := r.Lanes[i].Price(model)
			if !priced {
				return 0, false
			}
			usd, known = max(usd, p.Estimate(input, output, at).USD()), true
		}
	}
	return usd, known
}

// Routes lists the routes, in the order in which the input needs them.
func (t *Table) Routes() []*Route { return t.order }

// Named returns the route of that name; nil if there is none.
func (t *Table) Named(pool string) *Route { return t.names[pool] }

// Options returns the pools and the lanes of the run as options. A pilot uses all lanes of a pool in turn,
// and prefers none.
func (t *Table) Options(pilot bool) (opts []batch.Option, err error) {
	lanes := map[string]bool{}
	if slices.ContainsFunc(t.order, func(r *Route) bool { return r.Pool.Patience > 0 }) {
		opts = append(opts, batch.WithHomeKeyOf(t.homeKey))
	}
	for _, r := range t.order {
		if pilot {
			opts = append(opts, batch.WithPool(r.Name, slices.Concat(r.tiers...)...))
		} else {
			opts = append(opts, r.Options()...)
		}
		for i := range r.Lanes {
			lane := &r.Lanes[i]
			if lanes[lane.Machine] {
				continue
			}
			lanes[lane.Machine] = true
			c, err := lane.Config()
			if err != nil {
				return nil, err
			}
			opts = append(opts, batch.WithLane(lane.Machine, c))
		}
	}
	return opts, nil
}

// Home returns the lane that is the home of a key, on a sticky route.
func (r *Route) Home(key string) (lane string) {
	lanes, weights := r.tiers[0], []int(nil)
	if len(r.weights) > 0 {
		for _, name := range lanes {
			weights = append(weights, r.Weight(name))
		}
	}
	return lanes[batch.HomeOf(key, lanes, weights)]
}

// At returns the options for a pool of one home of a sticky route: the home goes first, then the others take
// turns.
func (r *Route) At(name, home string) []batch.Option {
	others := slices.DeleteFunc(slices.Clone(r.tiers[0]), func(lane string) bool { return lane == home })
	opts := []batch.Option{batch.WithPrefer(name, r.Pool.Patience, []string{home}, others), batch.WithSpill(name, r.Pool.Patience)}
	if len(r.weights) > 0 {
		opts = append(opts, batch.WithWeights(name, r.weights))
	}
	return opts
}

// Sticks reports whether the lanes of a route are homes.
func (r *Route) Sticks() bool { return r.Pool.Patience > 0 && len(r.tiers[0]) > 1 }

// Spread returns the options for the pool of a route whose lanes take turns, even if they are homes.
func (r *Route) Spread() []batch.Option {
	if !r.Sticks() {
		return r.Options()
	}
	opts := []batch.Option{batch.WithPool(r.Name, r.tiers[0]...)}
	if len(r.weights) > 0 {
		opts = append(opts, batch.WithWeights(r.Name, r.weights))
	}
	return opts
}

// Options returns the options for the pool of a route, by its policy.
func (r *Route) Options() (opts []batch.Option) {
	if len(r.weights) > 0 {
		opts = append(opts, batch.WithWeights(r.Name, r.weights))
	}
	switch {
	case r.Pool.Patience > 0:
		return append(opts, batch.WithSticky(r.Name, r.Pool.Patience, r.tiers[0]...))
	case len(r.tiers) == 1:
		return append(opts, batch.WithPool(r.Name, r.tiers[0]...))
	}
	opts = append(opts, batch.WithPrefer(r.Name, r.Pool.After, r.tiers...))
	if r.Pool.Spill > 0 {
		opts = append(opts, batch.WithSpill(r.Name, r.Pool.Spill))
	}
	return opts
}
