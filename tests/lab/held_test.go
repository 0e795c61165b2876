package lab_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

// The named bound is the one that binds. Whether a word is true cannot be seen by looking,
// so the tests take the bound away. They repeat a run with the named bound doubled, which
// must shorten it as predicted, and with each other bound doubled, which must not.

// A setting is a world in which several things may hold a run back. A zero field is a thing
// that is absent.
type setting struct {
	seed        uint64
	rpm, tpm    float64
	configured  bool // the limits; else headers tell them
	concurrency int
	slots       int     // places of a server of one's own, behind which calls queue
	perSecond   float64 // of the input
	latency     time.Duration
	tokens      int
	items       int
}

// knobs are what can be doubled, by the word of the bound.
var knobs = map[limiter.Bound]func(*setting){
	limiter.BoundRequests:    func(s *setting) { s.rpm *= 2 },
	limiter.BoundTokens:      func(s *setting) { s.tpm *= 2 },
	limiter.BoundConcurrency: func(s *setting) { s.concurrency *= 2 },
	limiter.BoundWindow:      func(s *setting) { s.slots *= 2 },
	limiter.BoundInput:       func(s *setting) { s.perSecond *= 2 },
}

// capacities are how many items a second each lets through.
func (s setting) capacities() map[limiter.Bound]float64 {
	latency := s.latency.Seconds() * math.Exp(spread*spread/2)
	if s.slots > 0 {
		latency = s.latency.Seconds()
	}
	all := map[limiter.Bound]float64{limiter.BoundConcurrency: float64(s.concurrency) / latency}
	for by, rate := range map[limiter.Bound]float64{
		limiter.BoundRequests: s.rpm / 60, limiter.BoundTokens: s.tpm / 60 / float64(s.tokens), limiter.BoundWindow: float64(s.slots) / latency, limiter.BoundInput: s.perSecond,
	} {
		if rate > 0 {
			all[by] = rate
		}
	}
	return all
}

const (
	spread = 0.3         // of latencies
	lasts  = 300         // seconds that a run takes, if what is meant to bind binds
	burst  = time.Second // depth of the limits: a minute's would be spent at once
	queues = 4           // latency that a server of one's own is to keep to, in its own time for a call
)

// draw makes a setting, in which one thing or another is the least.
func draw(seed uint64) setting {
	rng := rand.New(rand.NewPCG(seed, 31))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	s := setting{
		seed: seed, configured: rng.IntN(3) == 0, tokens: int(between(100, 900)),
		latency: time.Duration(between(0.3, 3) * float64(time.Second)),
	}
	rate := between(2, 20) // of what is meant to bind
	other := func() float64 { return rate * between(1.3, 4) }
	s.concurrency = max(2, int(math.Ceil(other()*s.latency.Seconds()*1.05)))
	switch seed % 5 {
	case 0:
		s.rpm, s.tpm = 60*rate, 60*other()*float64(s.tokens)
	case 1:
		s.rpm, s.tpm = 60*other(), 60*rate*float64(s.tokens)
	case 2:
		s.concurrency = max(2, int(rate*s.latency.Seconds()))
		s.rpm = 60 * other()
	case 3:
		s.slots = max(2, int(rate*s.latency.Seconds()))
		s.concurrency = int(float64(queues*s.slots) * between(1.3, 4))
	case 4:
		s.perSecond, s.rpm = rate, 60*other()
	}
	least := math.Inf(1)
	for _, rate := range s.capacities() {
		least = min(least, rate)
	}
	s.items = int(lasts * least)
	return s
}

// outcome is the result of a run of a setting.
type outcome struct {
	took   time.Duration
	by     limiter.Bound // what held it back for most of its time
	share  float64
	factor float64 // at how many times the speed the next would bind, as was said half-way; 0: not known
	said   observe.Bottleneck
}

func (s setting) run(t *testing.T) (o outcome) {
	synctest.Test(t, func(t *testing.T) { o = s.happen(t) })
	return o
}

func (s setting) happen(t *testing.T) outcome {
	server := sim.New(sim.Config{
		RPM: s.rpm, TPM: s.tpm, Burst: burst, Headers: !s.configured, RetryAfter: sim.Always, RetryAfterMS: true,
		Latency: sim.Latency{Median: s.latency, Sigma: spread}, TrackIDs: true, Seed: s.seed,
	}, clockwork.NewRealClock())
	if s.slots > 0 {
		server = sim.New(sim.Config{TrackIDs: true}, clockwork.NewRealClock())
	}
	client, err := openai.New(openai.Config{BaseURL: "http://sim.invalid/v1", HTTPClient: &http.Client{Transport: sim.NewTransport(server)}})
	if err != nil {
		t.Fatal(err)
	}
	rec := observe.New(observe.Config{Total: s.items})
	half, at := observe.Snapshot{}, make(chan struct{})
	go func() {
		defer close(at)
		for rec.Snapshot(time.Now()).Answered < s.items/2 {
			time.Sleep(time.Second)
		}
		half = rec.Snapshot(time.Now())
	}()
	began := time.Now()
	_, err = batch.Run(t.Context(), s.input(), s.caller(client), append(rec.Options(), s.options()...)...)
	if err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	<-at
	ledger := rec.Snapshot(time.Now()).Ledger
	o := outcome{took: took, said: half.Bottleneck}
	if os.Getenv("HELD_SHOW") != "" {
		for _, l := range half.Lanes {
			t.Logf("speed %.2f, lane %.2f, draws %+v, window %d, mean %v, %+v", half.Speed, l.Speed, l.Draw, l.Window, l.Latency, l.View.Limits)
		}
	}
	for by, d := range ledger {
		if share := d.Seconds() / took.Seconds(); share > o.share {
			o.by, o.share = limiter.Bound(by), share
		}
	}
	if half.Bottleneck.By == o.by {
		o.factor = half.Bottleneck.Factor
	}
	return o
}

// caller asks the server, or waits for one of its places first.
func (s setting) caller(client *openai.Client) batch.Func[int, provider.Reply] {
	places := make(chan struct{}, max(1, s.slots))
	return func(ctx context.Context, i int) (provider.Reply, error) {
		if s.slots > 0 {
			places <- struct{}{}
			time.Sleep(s.latency)
			<-places
		}
		return client.Do(ctx, provider.Request{Endpoint: "/v1/chat/completions", Model: "m", Body: s.body(i)})
	}
}

func (s setting) body(i int) []byte {
	return fmt.Appendf(nil, `{"model":"m","max_tokens":%d,"messages":[{"role":"user","content":"question %d"}]}`, s.tokens, i)
}

func (s setting) input() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s.items {
			if s.perSecond > 0 {
				time.Sleep(time.Duration(float64(time.Second) / s.perSecond))
			}
			if !yield(i) {
				return
			}
		}
	}
}

func (s setting) options() []batch.Option {
	opts := []batch.Option{
		batch.WithConcurrency(s.concurrency), batch.WithSeed(s.seed),
		batch.WithCharge(batch.Charge{Rule: limiter.ChargeGreater}),
		batch.WithCostOf(func(i int) batch.Cost {
			input, output := estimate.Request(s.body(i))
			return batch.Cost{Requests: 1, Input: input, Output: output}
		}),
	}
	if s.configured {
		opts = append(opts, batch.WithLimits(batch.Limits{RPM: s.rpm, TPM: s.tpm}))
	}
	if s.slots > 0 {
		opts = append(opts, batch.WithLocalServer(queues*s.latency))
	}
	return opts
}

// judged is the verdict on a setting, after its doublings.
type judged struct {
	right bool
	text  string
}

const (
	mostly    = 0.6  // share of the time from which on a bound is said to be the one
	tolerance = 0.15 // of the speed that was predicted
	idle      = 0.05 // by which a run may become shorter when something else is doubled
)

// judge doubles each bound in turn; false if none held the run back for most of its time.
func (s setting) judge(t *testing.T) (judged, bool) {
	was := s.run(t)
	if was.share < mostly || knobs[was.by] == nil {
		return judged{text: fmt.Sprintf("%q for %.0f %%", was.by, 100*was.share)}, false
	}
	j := judged{right: true, text: fmt.Sprintf("%s (%.0f %%, next %s at %.2f)", was.by, 100*was.share, was.said.Next, was.factor)}
	for by := range s.capacities() {
		doubled := s
		knobs[by](&doubled)
		speedup := was.took.Seconds() / doubled.run(t).took.Seconds()
		want, ok := 1.0, speedup <= 1/(1-idle)
		if by == was.by {
			want = min(2, cmp.Or(was.factor, 2))
			ok = math.Abs(speedup/want-1) <= tolerance
		}
		j.text += fmt.Sprintf("; %s doubled: %.2f of %.2f", by, speedup, want)
		j.right = j.right && ok
	}
	return j, true
}

// TestWhatIsNamedBinds tries some settings, or as many as HELD says, from HELD_BASE on.
func TestWhatIsNamedBinds(t *testing.T) {
	n, base := 10, uint64(0)
	if v, err := strconv.Atoi(os.Getenv("HELD")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("HELD_BASE"), 10, 64); err == nil {
		base = v
	}
	right, all := 0, 0
	for seed := base; seed < base+uint64(n); seed++ {
		s := draw(seed)
		j, named := s.judge(t)
		if !named {
			t.Logf("%d: %s: %+v", seed, j.text, s)
			continue
		}
		if all++; j.right {
			right++
			continue
		}
		t.Logf("%d: %s: %+v", seed, j.text, s)
	}
	t.Logf("%d of %d right, %d had no one bound", right, all, n-all)
	if float64(right) < 0.95*float64(all)-1 || all < n*3/4 {
		t.Errorf("%d of %d right", right, all)
	}
}
