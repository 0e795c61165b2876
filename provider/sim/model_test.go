package sim

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim/face"
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
// the wait that the refusal named is over, and not a nanosecond sooner.
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

// A call above the limit can never pass, and its refusal says so. A call above the bucket's
// depth passes when the bucket is full, and the calls behind it pay.
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

func BenchmarkDecide(b *testing.B) {
	m := NewModel(Config{RPM: 60_000, TPM: 6_000_000, Latency: Latency{Median: time.Second, Sigma: .4}}, epoch)
	now, c := epoch, Call{Tokens: 100}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		m.Decide(now, c)
	}
}

func BenchmarkTransport(b *testing.B) {
	client := &http.Client{Transport: NewTransport(New(Fast(), clockwork.NewRealClock()))}
	body := chatBody(strings.Repeat("What is in the river? ", 20))
	b.ReportAllocs()
	for b.Loop() {
		resp := must.Get(client.Post("http://sim/v1/chat/completions", "application/json", strings.NewReader(body)))(b)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// endpoint is one of OpenAI's paths that call a model.
type endpoint string

const (
	chatCompletions endpoint = "/v1/chat/completions"
	completions     endpoint = "/v1/completions"
	embeddings      endpoint = "/v1/embeddings"
	responses       endpoint = "/v1/responses"

	invalidRequest = "invalid_request_error"
	maxInputs      = 2048 // of an array of texts
	dimensions     = face.Dimensions
)

func quote(s string) []byte { return face.Quote(s) }

func tokensOf(chars int) int { return face.TokensOf(chars) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// blocked waits until so many timers are armed on the clock.
func blocked(t *testing.T, clock *clockwork.FakeClock, timers int) {
	t.Helper()
	must.Do(t, clock.BlockUntilContext(t.Context(), timers))
}

// received waits until the server has decided on a call.
func received(t *testing.T, s *Server) {
	t.Helper()
	for s.Books().Received == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
}

// 240 prompts through 64 workers that stop for what a refusal asks and then go
// on together meet refusals at once, and are done within 15 to 40 s.
func TestSilentIsSeenToThrottleAndEndsInTime(t *testing.T) {
	m := NewModel(Silent(), epoch)
	type call struct {
		at time.Time
		id int
	}
	var queue []call
	for i := range 240 {
		queue = append(queue, call{at: epoch, id: i})
	}
	free, refused, end := slices.Repeat([]time.Time{epoch}, 64), 0, epoch
	latest := epoch
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		slices.SortFunc(free, time.Time.Compare)
		now := later(free[0], latest)
		v := m.Decide(now, Call{ID: fmt.Sprint(c.id)})
		free[0] = now.Add(v.Latency)
		end = later(end, free[0])
		if v.Kind == RateLimited {
			refused++
			queue = append([]call{c}, queue...)
			latest = later(latest, free[0].Add(v.RetryAfter))
		}
	}
	if b := m.Books(); b.Accepted != 240 || refused < 2 {
		t.Errorf("%+v, %d refusals", b, refused)
	}
	t.Logf("%v with %d refusals", end.Sub(epoch), refused)
	if d := end.Sub(epoch); d < 15*time.Second || d > 40*time.Second {
		t.Errorf("took %v with %d refusals", d, refused)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Demo and Silent are one provider, but that the first one's headers say what is left.
func TestDemoSaysItsLimit(t *testing.T) {
	demo := Demo()
	if !demo.Headers || Silent().Headers {
		t.Errorf("headers: demo %v, silent %v", demo.Headers, Silent().Headers)
	}
	if demo.Headers = false; fmt.Sprint(demo) != fmt.Sprint(Silent()) {
		t.Errorf("%+v\n%+v", demo, Silent())
	}
}
