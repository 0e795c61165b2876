package serve

import (
	"cmp"
	"context"
	"math"
	"strings"
	"sync"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// An upstream is what serve calls: the provider of the flags, or the lanes in the file of --config.
// Connections use it while SIGHUP replaces it.
type upstream struct {
	shared *batch.Shared
	clock  clockwork.Clock

	mu          sync.Mutex // guards what follows
	account     *account.Account
	flags       *settings.Flags
	table       *route.Table               // nil: there is one lane
	lane        batch.LaneConfig           // without a table: the settings of each lane
	laneChanged bool                       // they are not those that the shared began with
	defined     map[string]bool            // lanes that the shared knows as they are now
	opts        map[*route.Route]routeOpts // of the pools that were asked for
	homes       map[string]routeOpts       // of their homes
	requested   map[requestedPool]bool     // whose pools are there, or were before SIGHUP
	member      Member                     // nil: the limits are this process's own
	limits      map[string]string          // of the cluster, by the lane that is under it
	limit       string                     // the one of all calls, and their lane; "": they have several
}

// routeOpts are the options of calls in a pool.
type routeOpts []batch.Option

// connect connects to the account or lanes of complete flags, and lowers the concurrency to the open files that are
// allowed. It makes no call.
func connect(ctx context.Context, w *world.World, f *settings.Flags) (*account.Account, error) {
	a, err := account.Connect(ctx, w, f)
	if err != nil {
		return nil, err
	}
	if lowered := a.LowerConcurrency(); lowered != "" {
		a.Note(event.LoweredConcurrency, lowered)
	}
	return a, nil
}

// sharedOptions returns the options of all calls together.
func sharedOptions(w *world.World, f *settings.Flags, a *account.Account) []batch.Option {
	opts := []batch.Option{batch.WithClock(w.Clock), batch.WithSeed(seedOf(w, f)), batch.WithConcurrency(f.Concurrency)}
	if a.Lanes != nil {
		return append(opts, f.Lanes.Options(f.Law)...)
	}
	return append(opts, f.LaneOptions()...)
}

func seedOf(w *world.World, f *settings.Flags) uint64 {
	if f.Seeded {
		return f.Seed
	}
	return w.Chance
}

// use replaces the flags and the account. Changed limits hold at once, also in existing lanes.
func (u *upstream) use(ctx context.Context, f *settings.Flags, a *account.Account) error {
	lane, err := batch.LaneOf(f.LaneOptions()...)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	began := u.account == nil
	if !began {
		u.account.Fleet.CloseIdle() // calls in flight end on their own connections
	}
	changed := !began && a.Lanes == nil && lane != u.lane
	u.account, u.flags, u.lane, u.table = a, f, lane, nil
	u.defined, u.opts, u.homes = map[string]bool{}, map[*route.Route]routeOpts{}, map[string]routeOpts{}
	clear(u.limits)
	if a.Lanes != nil {
		u.table = route.New(f)
		for one := range u.requested {
			_, _, _ = u.find(one.operation, one.model) // what is no longer served is refused when it is next asked for
		}
		return nil
	}
	u.laneChanged = u.laneChanged || changed
	if !changed || u.member != nil { // a member puts each lane under its limit anew, at its next call
		return nil
	}
	st, err := u.shared.Status(ctx, math.MaxInt)
	if err != nil {
		return err
	}
	for i := range st.Lanes {
		if err := u.define(st.Lanes[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// requestedPool names a pool that a client has asked for.
type requestedPool struct{ operation, model string }

// mostDefined bounds what is remembered by lane or by model: clients choose the models.
const mostDefined = 10_000

// define gives the Shared the settings of a lane, unless it has them. Its caller holds mu.
func (u *upstream) define(name string) error {
	if !u.laneChanged || u.defined[name] || len(u.defined) == mostDefined {
		return nil
	}
	u.defined[name] = true
	return u.shared.Define(name, u.lane)
}

// close closes idle connections.
func (u *upstream) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.account.Fleet.CloseIdle()
}

// name returns the name of the provider, or that of the lanes together.
func (u *upstream) name() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.account.Name
}

// pool returns the name of the pool in which a request waits, and the options of its call.
func (u *upstream) pool(operation, model string) (string, []batch.Option, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.find(operation, model)
}

// find is pool, for callers that hold mu.
func (u *upstream) find(operation, model string) (string, []batch.Option, error) {
	if u.table == nil {
		return u.findLane(model)
	}
	return u.findRoute(operation, model)
}

// callOptions returns the options of calls in any pool.
func (u *upstream) callOptions() routeOpts {
	return routeOpts{batch.WithMaxAttempts(u.flags.MaxAttempts)}
}

// findLane is find without a table: the pool is the lane of the model.
func (u *upstream) findLane(model string) (string, []batch.Option, error) {
	name := cmp.Or(u.limit, u.account.Lane(model))
	if u.member != nil {
		return name, u.callOptions(), u.putUnderLimit(name, cmp.Or(u.limit, u.account.Limit(model)), u.lane)
	}
	return name, u.callOptions(), u.define(name)
}

// findRoute is find with a table. It gives the Shared the lanes of the route before their first use.
func (u *upstream) findRoute(operation, model string) (string, []batch.Option, error) {
	r, err := u.table.Native(operation, model)
	if err != nil {
		return "", nil, err
	}
	if len(u.requested) < mostDefined { // also where another operation has the route: after SIGHUP each may have its own
		u.requested[requestedPool{operation, model}] = true
	}
	opts := u.opts[r]
	if opts != nil && u.member == nil {
		return r.Name, opts, nil
	}
	for i := range r.Lanes { // each time in a cluster, where a limit that nobody used is forgotten
		l := &r.Lanes[i]
		if u.defined[l.Machine] && (u.member == nil || u.member.Uses(l.Machine)) {
			continue
		}
		if err := u.defineRouteLane(l); err != nil {
			return "", nil, err
		}
		u.defined[l.Machine] = true
	}
	if opts == nil {
		opts = append(u.callOptions(), r.Spread()...)
		u.opts[r] = opts
	}
	return r.Name, opts, nil
}

// homeMark divides the name of a pool from that of the home. No name that people write has it.
const homeMark = "\x00"

// home returns where a request of a sticky pool waits first; zero if it has no home. With a home by prefix, the
// client's prompt_cache_key counts before the beginning of the prompt.
func (u *upstream) home(pool string, body []byte) (h handler.Home) {
	r := u.sticky(pool)
	if r == nil {
		return h
	}
	key := ""
	if named := rawjson.Lookup(body, "prompt_cache_key"); r.Pool.By == settings.ByPrefix && rawjson.IsString(named) {
		key = string(named)
	} else {
		key = r.HomeKey(&prompts.Request{Body: body, Metadata: rawjson.Lookup(body, "metadata")})
	}
	if key == "" {
		return h
	}
	lane := r.Home(key)
	name := pool + homeMark + lane
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.homes[name] == nil {
		u.homes[name] = append(u.callOptions(), r.At(name, lane)...)
	}
	return handler.Home{Pool: name, Options: u.homes[name], Patience: r.Pool.Patience}
}

// sticky returns the route of a sticky pool; nil if the pool is not sticky.
func (u *upstream) sticky(pool string) *route.Route {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.table == nil {
		return nil
	}
	if r := u.table.Named(pool); r != nil && r.Sticks() {
		return r
	}
	return nil
}

// defineRouteLane gives the Shared the settings of a lane of the table; in a cluster it puts the lane under its
// limit.
func (u *upstream) defineRouteLane(l *route.OnRoute) error {
	c, err := l.Config()
	switch {
	case err != nil:
		return err
	case u.member == nil:
		return u.shared.Define(l.Machine, c)
	}
	c.Account = u.account.AccountOf(l.Spec)
	if c.Window = 0; l.Spec.Flags.All.Changed("concurrency") {
		c.Window = l.Spec.Window()
	}
	return u.putUnderLimit(l.Machine, u.account.LimitOn(l.Spec, l.Word), c)
}

// lanes returns the names of a pool's lanes. In a cluster it also marks their limits as used: the server asks each
// second for each pool with waiting requests.
func (u *upstream) lanes(pool string) (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer func() {
		for _, name := range names {
			if u.member != nil {
				u.member.Uses(name)
			}
		}
	}()
	if u.table == nil {
		return []string{pool}
	}
	if _, lane, is := strings.Cut(pool, homeMark); is {
		return []string{lane}
	}
	r := u.table.Named(pool)
	if r == nil { // it was there before SIGHUP
		return nil
	}
	for i := range r.Lanes {
		names = append(names, r.Lanes[i].Machine)
	}
	return names
}

// price returns the cost of a call with so many tokens on the dearest lane of a pool; false if it is not known.
func (u *upstream) price(pool, model string, input, output float64) (most limiter.Money, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.table == nil {
		p, _, known := u.flags.Known.Of(model)
		if !known {
			return 0, false
		}
		return p.Estimate(input, output, u.clock.Now()), true
	}
	r := u.table.Named(pool)
	if r == nil {
		return 0, false
	}
	for i := range r.Lanes {
		p, _, priced := r.Lanes[i].Price(model)
		if !priced {
			return 0, false
		}
		most, known = max(most, p.Estimate(input, output, u.clock.Now())), true
	}
	return most, known
}

// cost returns what an answered call has cost on a lane.
func (u *upstream) cost(lane, model string, used provider.Usage) (limiter.Money, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	cost, _, known := u.account.Bill(&u.flags.Known, lane, model, used, u.clock.Now())
	return cost, known
}

// passer returns the way to the provider of a lane; nil if there is none.
func (u *upstream) passer(lane string) handler.Upstream {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.account.Passer(lane); p != nil {
		return p
	}
	return nil
}

// listingLane returns the lane whose provider lists the models.
func (u *upstream) listingLane() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.table != nil {
		return u.account.Lanes[0].Spec.Machine("")
	}
	return u.account.Lane("")
}

// calledAddresses lists the addresses that are called.
func calledAddresses(f *settings.Flags) (all []string) {
	of := []*settings.Flags{f}
	if f.Fleet != nil {
		of = nil
		for i := range f.Fleet.Lanes {
			of = append(of, f.Fleet.Lanes[i].Flags)
		}
	}
	for _, one := range of {
		if one.Provider != settings.ProviderSim {
			all = append(all, cmp.Or(one.BaseURL, one.Vendor.Base))
		}
	}
	return all
}

// checkNotItself refuses an upstream that is this server, as its calls would come back.
func checkNotItself(d *entrance, f *settings.Flags) error {
	for _, base := range calledAddresses(f) {
		if d.leadsTo(base) {
			return exit.Refuse("the upstream %s is headrace serve itself, so calls would go round for ever: set --base-url to the provider, or unset the variable that names this address", exit.WithoutKeys(base))
		}
	}
	return nil
}
