package sim

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
)

const ms = time.Millisecond

// acceptedAt asks once at each step and says when the answer was yes.
func acceptedAt(m *Model, step, until time.Duration, c Call) []time.Duration {
	var at []time.Duration
	for d := time.Duration(0); d <= until; d += step {
		if m.Decide(epoch.Add(d), c).Kind == Accepted {
			at = append(at, d)
		}
	}
	return at
}

func wantTimes(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("accepted at %v\nwant        %v", got, want)
	}
}

// A bucket of two seconds at one a second lets two pass at once and then one
// each second, to the millisecond.
func TestBucketAcceptsAtExactTimes(t *testing.T) {
	m := NewModel(Config{RPM: 60, Burst: 2 * time.Second}, epoch)
	got := acceptedAt(m, 50*ms, 3*time.Second, Call{})
	wantTimes(t, got, 0, 50*ms, 1000*ms, 2000*ms, 3000*ms)
}

// A fixed window grants its share at once and nothing until the next begins.
func TestFixedWindowsStartAfreshAtEachBoundary(t *testing.T) {
	m := NewModel(Config{RPM: 12, Window: 10 * time.Second}, epoch)
	got := acceptedAt(m, time.Second, 22*time.Second, Call{})
	wantTimes(t, got, 0, 1*time.Second, 10*time.Second, 11*time.Second, 20*time.Second, 21*time.Second)
}

// A fixed window does not hand on what it did not use.
func TestUnusedWindowIsLost(t *testing.T) {
	m := NewModel(Config{RPM: 12, Window: 10 * time.Second}, epoch)
	now := epoch.Add(95 * time.Second)
	for i, want := range []Kind{Accepted, Accepted, RateLimited} {
		if got := m.Decide(now, Call{}).Kind; got != want {
			t.Errorf("call %d: %s, want %s", i, got, want)
		}
	}
}

// A window whose share is less than one request lets one pass as often as the
// shares add up to it.
func TestWindowSmallerThanOneRequest(t *testing.T) {
	m := NewModel(Config{RPM: 12, Window: time.Second}, epoch)
	got := acceptedAt(m, 500*ms, 11*time.Second, Call{})
	wantTimes(t, got, 0, 5*time.Second, 10*time.Second)
}

// Doubling and halving take effect at their instant, not at the next call, and
// a change to zero lifts the limit.
func TestChangesTakeEffectWhenTheyAreDue(t *testing.T) {
	m := NewModel(Config{RPM: 60, Burst: time.Second, Changes: []Change{
		{At: 2 * time.Second, RPM: 120}, {At: 4 * time.Second, RPM: 30}, {At: 8 * time.Second},
	}}, epoch)
	got := acceptedAt(m, 500*ms, 9*time.Second, Call{})
	wantTimes(t, got, 0, 1000*ms, 2000*ms, 2500*ms, 3000*ms, 3500*ms, 4000*ms, 6000*ms,
		8000*ms, 8500*ms, 9000*ms)

	// Five seconds at one a second, then one at ten.
	late := NewModel(Config{RPM: 60, Burst: 10 * time.Second, Changes: []Change{{At: 5 * time.Second, RPM: 600}}}, epoch)
	for range 10 {
		late.Decide(epoch, Call{})
	}
	if v := late.Decide(epoch.Add(6*time.Second), Call{}); v.Requests.Remaining != 14 || v.Requests.Limit != 600 {
		t.Errorf("after the change: %+v", v)
	}
}

// A refusal costs nothing: however often one asks, the next is accepted when
// the wait that was told is over, and not a nanosecond sooner.
func TestRefusedCallsAreNotChargedAndTheWaitIsExact(t *testing.T) {
	for name, cfg := range map[string]Config{
		"bucket": {RPM: 700, TPM: 7000, Burst: 3 * time.Second},
		"window": {RPM: 700, TPM: 7000, Window: 7 * time.Second},
	} {
		m, c := NewModel(cfg, epoch), Call{Tokens: 11}
		now, refused := epoch.Add(13*ms), 0
		for range 2000 {
			v := m.Decide(now, c)
			if v.Kind == Accepted {
				continue
			}
			refused++
			if early := m.Decide(now.Add(v.Wait-time.Microsecond), c); early.Kind != RateLimited {
				t.Fatalf("%s: accepted before its wait of %v was over", name, v.Wait)
			}
			now = now.Add(v.Wait)
			if due := m.Decide(now, c); due.Kind != Accepted {
				t.Fatalf("%s: not accepted when its wait of %v was over", name, v.Wait)
			}
		}
		if b := m.Books(); refused == 0 || b.ChargedRequests != float64(b.Accepted) || b.Refused429 != 2*refused {
			t.Errorf("%s: %+v after %d waits", name, b, refused)
		}
	}
}

// The dimension that needs the longer wait is the one named.
func TestRefusalNamesTheDimensionThatIsShort(t *testing.T) {
	m := NewModel(Config{RPM: 60, TPM: 600}, epoch)
	m.Decide(epoch, Call{Tokens: 600})
	v := m.Decide(epoch, Call{Tokens: 100})
	if v.Dimension != Tokens || v.Wait != 10*time.Second {
		t.Errorf("%+v", v)
	}
	if v.Tokens.Remaining != 0 || v.Requests.Remaining != 59 {
		t.Errorf("a refusal took requests though tokens were short: %+v", v)
	}
	for range 59 {
		m.Decide(epoch.Add(time.Second), Call{})
	}
	if v := m.Decide(epoch.Add(time.Second), Call{}); v.Kind != Accepted {
		t.Fatalf("the second's refill is not there: %+v", v)
	}
	if v := m.Decide(epoch.Add(time.Second), Call{}); v.Dimension != Requests || v.Wait != time.Second {
		t.Errorf("%+v", v)
	}
}

// A call above the limit can never pass and is told so; one above the bucket's
// depth passes when it is full, and the ones behind it pay.
func TestLargeCalls(t *testing.T) {
	m := NewModel(Config{TPM: 6000, Burst: time.Second}, epoch)
	if v := m.Decide(epoch, Call{Tokens: 6001}); v.Kind != TooLarge || v.Status != 429 || v.Dimension != Tokens || v.HasRetryAfter {
		t.Errorf("above the limit: %+v", v)
	}
	if v := m.Decide(epoch, Call{Tokens: 300}); v.Kind != Accepted || v.Tokens.Remaining != 0 {
		t.Errorf("above the depth, full: %+v", v)
	}
	if v := m.Decide(epoch, Call{Tokens: 50}); v.Wait != 2500*ms {
		t.Errorf("behind a debt of 200 at 100 a second, 50 wait %v", v.Wait)
	}
}

// A clock that goes back gives nothing away and takes nothing.
func TestClockGoesBack(t *testing.T) {
	m := NewModel(Config{RPM: 60, Burst: time.Second}, epoch)
	m.Decide(epoch.Add(time.Minute), Call{})
	if v := m.Decide(epoch.Add(30*time.Second), Call{}); v.Wait != 31*time.Second {
		t.Errorf("%+v", v)
	}
	if v := m.Decide(epoch.Add(61*time.Second), Call{}); v.Kind != Accepted {
		t.Errorf("%+v", v)
	}
}

// Retry-After comes as configured: whole seconds rounded up, or milliseconds.
func TestRetryAfterModes(t *testing.T) {
	first := func(cfg Config) Verdict {
		cfg.RPM, cfg.Burst = 600, time.Millisecond
		m := NewModel(cfg, epoch)
		m.Decide(epoch, Call{})
		return m.Decide(epoch, Call{})
	}
	if v := first(Config{}); v.HasRetryAfter || v.Wait != 100*ms {
		t.Errorf("never: %+v", v)
	}
	if v := first(Config{RetryAfter: Always}); !v.HasRetryAfter || v.RetryAfter != time.Second {
		t.Errorf("always: %+v", v)
	}
	if v := first(Config{RetryAfter: Always, RetryAfterMS: true}); v.RetryAfter != 100*ms {
		t.Errorf("in milliseconds: %+v", v)
	}
	with := 0
	for seed := range uint64(200) {
		if first(Config{RetryAfter: Sometimes, Seed: seed}).HasRetryAfter {
			with++
		}
	}
	if with < 70 || with > 130 {
		t.Errorf("sometimes: %d of 200", with)
	}
}

// What headers tell is the gauge after the call, and adds up to its depth.
func TestQuotaInVerdict(t *testing.T) {
	m := NewModel(Config{RPM: 600, Burst: 4 * time.Second, Headers: true}, epoch)
	for range 9 {
		m.Decide(epoch, Call{})
	}
	v := m.Decide(epoch, Call{})
	want := Quota{Limit: 600, Remaining: 30, Reset: time.Second}
	if v.Requests != want || v.Tokens != (Quota{}) || !v.HasHeaders {
		t.Errorf("%+v", v)
	}
	w := NewModel(Config{RPM: 600, Window: 10 * time.Second}, epoch)
	v = w.Decide(epoch.Add(13*time.Second), Call{})
	if want := (Quota{Limit: 600, Remaining: 99, Reset: 7 * time.Second}); v.Requests != want || v.HasHeaders {
		t.Errorf("%+v", v)
	}
}

// An outage rules its stretch and not an instant more, and charges nothing.
func TestOutages(t *testing.T) {
	m := NewModel(Config{RPM: 60, Outages: []Outage{
		{From: 10 * time.Second, For: 5 * time.Second, Mode: Outage503},
		{From: 20 * time.Second, For: 5 * time.Second, Mode: OutageHang},
		{From: 30 * time.Second, For: 5 * time.Second, Mode: OutageReset},
	}}, epoch)
	for at, want := range map[time.Duration]Verdict{
		10*time.Second - 1: {Status: 200, Kind: Accepted},
		10 * time.Second:   {Status: 503, Kind: Overloaded},
		15*time.Second - 1: {Status: 503, Kind: Overloaded},
		15 * time.Second:   {Status: 200, Kind: Accepted},
		22 * time.Second:   {Kind: Hung, Hang: true},
		34 * time.Second:   {Kind: ResetByPeer, Reset: true},
		35 * time.Second:   {Status: 200, Kind: Accepted},
	} {
		got := m.Decide(epoch.Add(at), Call{})
		got.Requests = Quota{}
		if got != want {
			t.Errorf("at %v: %+v, want %+v", at, got, want)
		}
	}
	if b := m.Books(); b.ChargedRequests != 3 || b.Errors[Overloaded] != 2 {
		t.Errorf("%+v", b)
	}
}

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
