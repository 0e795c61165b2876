package sim

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Who may not call, what is not there and what is not paid is turned away
// before anything is charged.
func TestTurnedAway(t *testing.T) {
	m := NewModel(Config{Keys: []string{"k"}, Models: []string{"m"}, QuotaAfter: 1, RPM: 60}, epoch)
	good := Call{Key: "k", Model: "m"}
	for i, c := range []struct {
		call   Call
		kind   Kind
		status int
	}{
		{Call{Model: "m"}, Unauthorized, 401},
		{Call{Key: "x", Model: "m", Invalid: true}, Unauthorized, 401},
		{Call{Key: "k", Model: "m", Invalid: true}, BadRequest, 400},
		{Call{Key: "k", Model: "n"}, ModelNotFound, 404},
		{good, Accepted, 200},
		{good, InsufficientQuota, 429},
		{good, InsufficientQuota, 429},
	} {
		if v := m.Decide(epoch, c.call); v.Kind != c.kind || v.Status != c.status || v.HasRetryAfter {
			t.Errorf("call %d: %+v, want %s", i, v, c.kind)
		}
	}
	if b := m.Books(); b.ChargedRequests != 1 || b.Received != 7 {
		t.Errorf("%+v", b)
	}
}

// Faults come as often as they are configured, and only those that a real
// service charges are charged.
func TestFaultRates(t *testing.T) {
	const n = 20_000
	m := NewModel(Config{Seed: 3, Errors: Rates{
		Server500: .05, Overloaded503: .10, BadRequest400: .15,
		Reset: .02, Hang: .03, Truncated: .04, Malformed200: .06,
	}}, epoch)
	for range n {
		m.Decide(epoch, Call{})
	}
	b := m.Books()
	for kind, want := range map[Kind]float64{
		ServerError: .05, Overloaded: .10, BadRequest: .15,
		ResetByPeer: .02, Hung: .03, Truncated: .04, Malformed: .06,
	} {
		if got := float64(b.Errors[kind]) / n; math.Abs(got-want) > .01 {
			t.Errorf("%s: %.3f of the calls, want %.2f", kind, got, want)
		}
	}
	if free := b.Errors[Overloaded] + b.Errors[BadRequest]; b.ChargedRequests != float64(n-free) {
		t.Errorf("charged %v of %d, of which %d were turned away", b.ChargedRequests, n, free)
	}
}

// Latency has the median and the ceiling it was given; a refusal is quick.
func TestLatency(t *testing.T) {
	m := NewModel(Config{Latency: Latency{Median: 100 * ms, Sigma: .5, Max: 300 * ms}, QuotaAfter: 5000}, epoch)
	below, atMax := 0, 0
	for range 5000 {
		switch l := m.Decide(epoch, Call{}).Latency; {
		case l < 100*ms:
			below++
		case l == 300*ms:
			atMax++
		case l > 300*ms:
			t.Fatalf("%v is above the ceiling", l)
		}
	}
	// ln 3 / 0.5 is 2.2 sigma: 1.4 % of the draws meet the ceiling.
	if below < 2350 || below > 2650 || atMax < 30 || atMax > 120 {
		t.Errorf("%d of 5000 below the median, %d at the ceiling", below, atMax)
	}
	if l := m.Decide(epoch, Call{}).Latency; l != 20*ms {
		t.Errorf("a refusal takes %v", l)
	}
	constant := NewModel(Config{Latency: Latency{Median: time.Second}, Refusal: ms}, epoch)
	if l := constant.Decide(epoch, Call{}).Latency; l != time.Second {
		t.Errorf("without sigma: %v", l)
	}
}

func fates(cfg Config, order []int) map[int][]Verdict {
	m, got := NewModel(cfg, epoch), map[int][]Verdict{}
	for _, i := range order {
		got[i] = append(got[i], m.Decide(epoch, Call{ID: strconv.Itoa(i)}))
	}
	return got
}

func equalFates(a, b map[int][]Verdict) bool {
	for i := range a {
		if !slices.Equal(a[i], b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// The same seed and calls give the same verdicts; another seed gives others.
func TestDeterminedBySeed(t *testing.T) {
	cfg := Config{Seed: 5, Errors: Rates{Server500: .3, Reset: .2}, Latency: Latency{Median: time.Second, Sigma: 1}}
	order := make([]int, 300)
	for i := range order {
		order[i] = i % 100
	}
	if !equalFates(fates(cfg, order), fates(cfg, order)) {
		t.Error("two runs of one seed differ")
	}
	other := cfg
	other.Seed = 6
	if equalFates(fates(cfg, order), fates(other, order)) {
		t.Error("two seeds agree")
	}
}

// With TrackIDs the fate of each try of an item is the same in any order of
// arrival, and differs from try to try.
func TestTrackedFateDoesNotDependOnOrder(t *testing.T) {
	cfg := Config{Seed: 5, TrackIDs: true, Errors: Rates{Server500: .5}, Latency: Latency{Median: time.Second, Sigma: 1}}
	there := make([]int, 300)
	for i := range there {
		there[i] = i % 100
	}
	back := slices.Clone(there)
	slices.Reverse(back)
	a := fates(cfg, there)
	if !equalFates(a, fates(cfg, back)) {
		t.Error("the order of arrival changed a fate")
	}
	if a[1][0] == a[1][1] && a[1][1] == a[1][2] {
		t.Error("every try of an item has the same fate")
	}
	if a[1][0] == a[2][0] {
		t.Error("two items have the same fate")
	}
}

// The books add up, and show an item that was answered twice; an answer whose
// caller left is none.
func TestBooks(t *testing.T) {
	m := NewModel(Config{RPM: 60, Burst: 5 * time.Second, TrackIDs: true, Models: []string{""}}, epoch)
	for _, id := range []string{"a", "b", "c", "a", "d"} {
		m.Decide(epoch, Call{ID: id, Tokens: 10})
	}
	m.Decide(epoch, Call{ID: "e"})
	m.Decide(epoch, Call{ID: "f", Model: "none"})
	b := m.Books()
	if b.Received != 7 || b.Accepted != 5 || b.Refused429 != 1 || b.Errors[ModelNotFound] != 1 {
		t.Errorf("%+v", b)
	}
	if b.ChargedRequests != 5 || b.ChargedTokens != 50 {
		t.Errorf("%+v", b)
	}
	if b.Distinct != 4 || b.MaxRepeats != 2 || b.Answered["a"] != 2 || b.Answered["e"] != 0 {
		t.Errorf("%+v", b)
	}
	m.Abandon(Call{ID: "a"})
	m.Abandon(Call{ID: "d"})
	if b := m.Books(); b.Abandoned != 2 || b.Accepted != 5 || b.Distinct != 3 || b.MaxRepeats != 1 {
		t.Errorf("after two callers left: %+v", b)
	}
	b.Errors[ModelNotFound] = 99
	b.Answered["b"] = 99
	if fresh := m.Books(); fresh.Errors[ModelNotFound] != 1 || fresh.Answered["b"] != 1 {
		t.Error("the books handed out are not a copy")
	}
}

// Without TrackIDs nothing is kept of an ID.
func TestUntrackedBooksKeepNoIDs(t *testing.T) {
	m := NewModel(Config{}, epoch)
	m.Decide(epoch, Call{ID: "a"})
	m.Abandon(Call{ID: "a"})
	if b := m.Books(); b.Answered != nil || b.MaxRepeats != 0 || b.Accepted != 1 || b.Abandoned != 1 {
		t.Errorf("%+v", b)
	}
}

// Every field that cannot be meant is refused, and the profiles are valid.
func TestValidate(t *testing.T) {
	for name, cfg := range map[string]Config{
		"negative RPM":       {RPM: -1},
		"NaN TPM":            {TPM: math.NaN()},
		"infinite RPM":       {RPM: math.Inf(1)},
		"negative burst":     {Burst: -1},
		"negative window":    {Window: -1},
		"negative median":    {Latency: Latency{Median: -1}},
		"negative sigma":     {Latency: Latency{Sigma: -1}},
		"negative quota":     {QuotaAfter: -1},
		"negative refusal":   {Refusal: -1},
		"a rate above one":   {Errors: Rates{Reset: 1.5}},
		"rates above one":    {Errors: Rates{Reset: .6, Hang: .6}},
		"a negative rate":    {Errors: Rates{Reset: -.1}},
		"outage of nothing":  {Outages: []Outage{{Mode: Outage503}}},
		"outage of no mode":  {Outages: []Outage{{For: 1}}},
		"outage beforehand":  {Outages: []Outage{{From: -1, For: 1, Mode: Outage503}}},
		"changes disordered": {Changes: []Change{{At: 2}, {At: 1}}},
		"change to negative": {Changes: []Change{{At: 2, RPM: -1}}},
		"unknown mode":       {RetryAfter: 7},
		"ms without seconds": {RetryAfterMS: true},
		"an empty key":       {Keys: []string{""}},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, cfg := range []Config{{}, Demo(), Fast(), {Errors: Rates{Reset: .1, Hang: .2, Truncated: .7}}} {
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("NewModel took an invalid configuration")
		}
	}()
	NewModel(Config{RPM: -1}, epoch)
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// twin is the obviously right quota: it keeps the exact list of what was
// accepted, and for each question replays the whole of it in fractions.
type twin struct {
	cfg      Config
	accepted []acceptance
}

type acceptance struct {
	at               time.Duration
	requests, tokens int64
}

func (w *twin) ask(at time.Duration, requests, tokens int64) bool {
	ok := w.fits(at, requests, func(a acceptance) int64 { return a.requests }, w.cfg.RPM, func(c Change) float64 { return c.RPM }) &&
		w.fits(at, tokens, func(a acceptance) int64 { return a.tokens }, w.cfg.TPM, func(c Change) float64 { return c.TPM })
	if ok {
		w.accepted = append(w.accepted, acceptance{at, requests, tokens})
	}
	return ok
}

// fits walks through time by way of every acceptance and change.
func (w *twin) fits(at time.Duration, cost int64, of func(acceptance) int64, limit float64, to func(Change) float64) bool {
	one := big.NewRat(1, 1)
	depth := func(limit float64) *big.Rat {
		span := w.cfg.Burst
		if w.cfg.Window > 0 {
			span = w.cfg.Window
		}
		d := inflow(limit, span)
		if d.Cmp(one) < 0 {
			return one
		}
		return d
	}
	level, last := depth(limit), time.Duration(0)
	fill := func(to time.Duration) {
		d := to - last
		if win := w.cfg.Window; win > 0 {
			d = (to/win - last/win) * win
		}
		level = least(depth(limit), new(big.Rat).Add(level, inflow(limit, d)))
		last = to
	}
	changes := w.cfg.Changes
	until := func(at time.Duration) {
		for len(changes) > 0 && changes[0].At <= at {
			fill(changes[0].At)
			was := limit
			limit = to(changes[0])
			if was == 0 {
				level = depth(limit)
			}
			level = least(level, depth(limit))
			changes = changes[1:]
		}
		fill(at)
	}
	for _, a := range w.accepted {
		until(a.at)
		if limit > 0 {
			level = new(big.Rat).Sub(level, big.NewRat(of(a), 1))
		}
	}
	until(at)
	return limit == 0 || level.Cmp(least(depth(limit), big.NewRat(cost, 1))) >= 0
}

func inflow(perMinute float64, d time.Duration) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetFloat64(perMinute), big.NewRat(int64(d), int64(time.Minute)))
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// The model accepts exactly the calls that a replay in fractions accepts, with
// bursts, fixed windows, two dimensions and changing limits.
func TestModelAcceptsWhatItsSlowTwinAccepts(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			cfg := randomQuota(rng)
			m, w := NewModel(cfg, epoch), &twin{cfg: cfg}
			at := time.Duration(0)
			for range 100 {
				at += time.Duration(rng.IntN(4)*rng.IntN(400)) * time.Millisecond
				tokens := 1 + rng.Int64N(300)
				got := m.Decide(epoch.Add(at), Call{Requests: 1, Tokens: float64(tokens)})
				if got.Kind == TooLarge {
					continue
				}
				if want := w.ask(at, 1, tokens); want != (got.Kind == Accepted) {
					t.Fatalf("%+v\nat %v with %d tokens: model says %s, twin accepts: %v", cfg, at, tokens, got.Kind, want)
				}
			}
		})
	}
}

// Limits are multiples of 60 a minute and instants whole milliseconds, so that
// ties are exact in the twin and frequent.
func randomQuota(rng *rand.Rand) Config {
	rpm := func() float64 { return float64(60 * rng.IntN(12)) }
	tpm := func() float64 { return float64(3000 * rng.IntN(12)) }
	cfg := Config{
		RPM:   rpm(),
		TPM:   tpm(),
		Burst: time.Duration(1+rng.IntN(60)) * time.Second,
	}
	if rng.IntN(3) == 0 {
		cfg.Window = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}[rng.IntN(3)]
	}
	at := time.Duration(0)
	for range rng.IntN(4) {
		at += time.Duration(rng.IntN(30_000)) * time.Millisecond
		cfg.Changes = append(cfg.Changes, Change{At: at, RPM: rpm(), TPM: tpm()})
	}
	return cfg
}
