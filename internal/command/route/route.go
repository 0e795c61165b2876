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

// Fallback reports whether a lane of the run is of a later tier.
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

	astray map[string]int // lines that no lane takes, by why
}

// New returns the empty table of a run with these flags, whose fleet is not nil.
func New(flags *settings.Flags) *Table {
	t := &Table{
		fleet: flags.Fleet, elsewhere: flags.GoesElsewhere(),
		choices: map[kind]*choice{}, routes: map[key]*Route{}, names: map[string]*Route{}, astray: map[string]int{},
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

// Takes says why no lane takes a line, or why a lane of its pool cannot; nil: it has a route. A
// line that has no lane at all is counted until the table is closed: [Table.Close] reports all of
// them at once.
func (t *Table) Takes(q *prompts.Request) error {
	c := t.choice(q)
	if c.why != "" && !t.closed {
		t.astray[c.why]++
		return nil
	}
	_, err := t.of(c, q)
	return err
}

// Of returns the route of a line that Takes has let pass; nil for another.
func (t *Table) Of(q *prompts.Request) *Route {
	r, _ := t.of(t.choice(q), q)
	return r
}

// Find returns the route of a line, or why no lane takes it. It counts no line.
func (t *Table) Find(q *prompts.Request) (*Route, error) { return t.of(t.choice(q), q) }

// Native returns the route of requests in the words of an endpoint, which nobody translates, or says why
// no lane takes them.
func (t *Table) Native(endpoint, model string) (*Route, error) {
	c := t.choice(&prompts.Request{Endpoint: endpoint, Model: model})
	switch {
	case c.why != "":
		return nil, errors.New(c.why)
	case c.asItIs == nil:
		return nil, fmt.Errorf("no lane of pool %s takes %s as it is", c.whole.Pool.Name, endpoint)
	}
	return c.asItIs, nil
}

// of decides between the routes for a kind of line.
func (t *Table) of(c *choice, q *prompts.Request) (*Route, error) {
	if c.why != "" {
		return nil, errors.New(c.why)
	}
	for _, i := range c.translating {
		err := t.translates(i, q)
		switch {
		case err == nil:
		case t.elsewhere && c.asItIs != nil:
			return c.asItIs, nil
		default:
			return nil, err
		}
	}
	return c.whole, nil
}

// translates says why a lane cannot take a line in its dialect.
func (t *Table) translates(i int, q *prompts.Request) error {
	asked := *q
	asked.Model, _ = t.fleet.Lanes[i].Serves(q.Model)
	err := t.takes[i](&asked)
	if why := new(provider.Untranslatable); errors.As(err, &why) {
		why.Lane = t.fleet.Lanes[i].Name
	}
	return err
}

// choice returns the lanes for a line's kind. A closed table makes no new one.
func (t *Table) choice(q *prompts.Request) *choice {
	k := kind{q.Endpoint, q.Model}
	if c := t.choices[k]; c != nil {
		return c
	}
	if t.closed {
		return &choice{why: fmt.Sprintf("model %q was not known when the run began: name it in models of a lane or in lines of a pool, or read the input from a file", settings.Clipped(q.Model))}
	}
	c := t.choose(q.Endpoint, q.Model)
	if len(t.choices) < mostChoices {
		t.choices[k] = c
	}
	return c
}

// choose finds the lanes for lines of a model and an endpoint.
func (t *Table) choose(endpoint, model string) *choice {
	pools := t.fleet.UsedPools()
	at := slices.IndexFunc(pools, func(p settings.PoolSpec) bool { return p.Takes(model, endpoint) })
	if at < 0 {
		return &choice{why: fmt.Sprintf("no pool takes model %q%s", settings.Clipped(model), forEndpoint(endpoint))}
	}
	if len(t.order) >= mostRoutes {
		return &choice{why: fmt.Sprintf("the input has more than %s models", words.Thousands(mostRoutes))}
	}
	pool, c := &pools[at], &choice{}
	var whole, asItIs set
	serving := false
	for _, name := range slices.Concat(pool.Tiers...) {
		i := slices.IndexFunc(t.fleet.Lanes, func(l settings.LaneSpec) bool { return l.Name == name })
		f := t.fleet.Lanes[i].Flags
		if _, serves := t.fleet.Lanes[i].Serves(model); !serves {
			continue
		}
		serving = true
		switch {
		case slices.Contains(t.served[i], endpoint) && slices.Contains(f.Serves(), endpoint):
			whole.add(i)
			asItIs.add(i)
		case slices.Contains(wire.Translates(f.Dialect), endpoint):
			whole.add(i)
			c.translating = append(c.translating, i)
		}
	}
	switch none := (set{}); {
	case !serving:
		c.why = fmt.Sprintf("no lane of pool %s serves model %q", pool.Name, settings.Clipped(model))
	case whole == none:
		c.why = fmt.Sprintf("no lane of pool %s has %s", pool.Name, endpoint)
	default:
		c.whole = t.route(key{at, model, whole}, pool)
		if asItIs != none {
			c.asItIs = t.route(key{at, model, asItIs}, pool)
		}
		if endpoint == prompts.Embeddings {
			c.why = c.whole.mixes()
		}
	}
	return c
}

// forEndpoint names an endpoint that is not the usual one.
func forEndpoint(endpoint string) string {
	if endpoint == prompts.ChatCompletions {
		return ""
	}
	return " for " + endpoint
}

// route returns the route of a set of lanes, which is made once.
func (t *Table) route(k key, pool *settings.PoolSpec) *Route {
	if r := t.routes[k]; r != nil {
		return r
	}
	r := &Route{Name: pool.Name + "/" + k.model, Pool: pool, Model: k.model, weights: map[string]int{}}
	for n := 2; t.names[r.Name] != nil; n++ {
		r.Name = fmt.Sprintf("%s/%s/%d", pool.Name, k.model, n)
	}
	for tier, names := range pool.Tiers {
		var machines []string
		for _, name := range names {
			i := slices.IndexFunc(t.fleet.Lanes, func(l settings.LaneSpec) bool { return l.Name == name })
			if !k.lanes.has(i) {
				continue
			}
			spec := &t.fleet.Lanes[i]
			word, _ := spec.Serves(k.model)
			machine := spec.Machine(word)
			r.Lanes = append(r.Lanes, OnRoute{Spec: spec, Word: word, Machine: machine, Tier: tier})
			if !slices.Contains(machines, machine) {
				machines = append(machines, machine)
			}
			if spec.Weight > 0 {
				r.weights[machine] = spec.Weight
			}
		}
		if len(machines) > 0 {
			r.tiers = append(r.tiers, machines)
		}
	}
	t.routes[k], t.names[r.Name] = r, r
	t.order = append(t.order, r)
	return r
}

// mixes says that vectors of several models would mix, which nobody can compare; "": they are of one.
func (r *Route) mixes() string {
	first := &r.Lanes[0]
	for i := range r.Lanes {
		l := &r.Lanes[i]
		if a, b := cmp.Or(first.Spec.SameAs, first.Word), cmp.Or(l.Spec.SameAs, l.Word); a != b {
			return fmt.Sprintf("pool %s: vectors of %s (lane %s) and of %s (lane %s) cannot be compared: give each a pool, or add the same same-as to both if they are one model",
				r.Pool.Name, a, first.Spec.Name, b, l.Spec.Name)
		}
	}
	return ""
}

// Foresee makes the routes for the models that are known without the input. It is for an input that
// is read only once.
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

// Close ends the filling of the table. It returns an error that names the lines that have no lane.
func (t *Table) Close() error {
	t.closed = true
	if len(t.astray) == 0 {
		return nil
	}
	const listed = 5 // lines on a terminal, of what is often one slip
	var all []string
	for _, why := range slices.Sorted(maps.Keys(t.astray)) {
		if len(all) == listed {
			all = append(all, fmt.Sprintf("and %d more like these", len(t.astray)-listed))
			break
		}
		all = append(all, fmt.Sprintf("%s (%s)", why, words.Count(t.astray[why], "line")))
	}
	return errors.New(strings.Join(all, "; "))
}

// Dearest returns the cost of so many tokens of a model on the dearest of its lanes; false: a lane
// has no known price, or the model has no lane.
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

// Options returns the pools and the lanes of the run. A pilot asks all lanes of a pool in turn, and
// prefers none.
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
			l := &r.Lanes[i]
			if lanes[l.Machine] {
				continue
			}
			lanes[l.Machine] = true
			c, err := l.Config()
			if err != nil {
				return nil, err
			}
			opts = append(opts, batch.WithLane(l.Machine, c))
		}
	}
	return opts, nil
}

// Home returns the lane that a key is at home in, on a sticky route.
func (r *Route) Home(key string) (lane string) {
	lanes, weights := r.tiers[0], []int(nil)
	if len(r.weights) > 0 {
		for _, name := range lanes {
			weights = append(weights, r.Weight(name))
		}
	}
	return lanes[batch.HomeOf(key, lanes, weights)]
}

// At returns the pool of one home of a sticky route: the home goes first, and then the others in turns.
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

// Spread returns the pool of a route, whose lanes take turns also where they are homes.
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

// Options returns the pool of a route.
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
