package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exact makes cooldowns last as long as they are asked to.
var exact = batch.WithLaneDefaults(machine.LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1}})

type result = batch.Result[int, provider.Reply]

// storm is a provider, and a client of it in the same bubble of virtual time.
type storm struct {
	t      *testing.T
	server *sim.Server
	client *openai.Client
	law    []batch.Option // of the runs
}

// laws are those that a storm must pass. The plain law comes first, as it starts at full
// speed, which is what makes a storm.
var laws = []struct {
	name    string
	options []batch.Option
}{{"plain", []batch.Option{batch.WithPlainLaw()}}, {"model", nil}}

// inStorms is inStorm under each law.
func inStorms(t *testing.T, cfg sim.Config, f func(t *testing.T, s *storm)) {
	t.Helper()
	for _, law := range laws {
		t.Run(law.name, func(t *testing.T) {
			inStorm(t, cfg, func(t *testing.T, s *storm) {
				s.law = law.options
				f(t, s)
			})
		})
	}
}

// inStorm runs f in a bubble with a provider that behaves so.
func inStorm(t *testing.T, cfg sim.Config, f func(t *testing.T, s *storm)) {
	t.Helper()
	cfg.TrackIDs = true
	synctest.Test(t, func(t *testing.T) {
		server := sim.New(cfg, clockwork.NewRealClock())
		f(t, newStorm(t, server, openai.Config{
			BaseURL:    "http://sim.invalid/v1",
			HTTPClient: &http.Client{Transport: sim.NewTransport(server)},
		}))
	})
}

func newStorm(t *testing.T, server *sim.Server, cfg openai.Config) *storm {
	t.Helper()
	client := must.Get(openai.New(cfg))(t)
	return &storm{t: t, server: server, client: client, law: laws[0].options}
}

// call asks the provider an item's own question.
func (s *storm) call(ctx context.Context, i int) (provider.Reply, error) {
	return s.client.Do(ctx, provider.Request{
		Endpoint: "/v1/chat/completions", Model: "m",
		Body: fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"question %d"}]}`, i),
	})
}

// neighbour uses up n of the provider's requests at this instant, as another client
// of the same account does.
func (s *storm) neighbour(n int) {
	for i := range n {
		go func() {
			if _, err := s.call(s.t.Context(), -1-i); err != nil {
				s.t.Error(err)
			}
		}()
	}
	synctest.Wait()
}

// run runs items and fails the test unless nothing was lost and nothing twice.
func (s *storm) run(ctx context.Context, items iter.Seq[int], fn batch.Func[int, provider.Reply], opts ...batch.Option) ([]result, batch.Summary, error) {
	s.t.Helper()
	var sum batch.Summary
	results, err := batch.Run(ctx, items, fn, slices.Concat([]batch.Option{batch.WithSummary(&sum)}, s.law, opts)...)
	if !sum.Proves() || sum.Items() != len(results) {
		s.t.Errorf("%d results, and the summary proves nothing: %+v", len(results), sum)
	}
	for i, r := range results {
		if r.Index != i {
			s.t.Fatalf("result %d is of item %d", i, r.Index)
		}
	}
	return results, sum, err
}

// allAnswered fails the test unless each of n items was answered, with its own
// answer.
func (s *storm) allAnswered(results []result, sum batch.Summary, err error, n int) {
	s.t.Helper()
	if err != nil || sum.Succeeded != n || len(results) != n {
		s.t.Fatalf("%v, %d of %d answered: %+v", err, sum.Succeeded, n, sum)
	}
	for _, r := range results {
		s.answered(r)
	}
}

func (s *storm) answered(r result) {
	s.t.Helper()
	if r.Err != nil || r.Status != http.StatusOK || !contains(r.Value.Body, sim.Answer("question "+strconv.Itoa(r.Item))) {
		s.t.Errorf("item %d: %v %d %q", r.Index, r.Err, r.Status, r.Value.Body)
	}
}

// agrees fails the test unless the provider's books, without what a neighbour used, match
// the summary.
func (s *storm) agrees(sum batch.Summary, neighbour int) {
	s.t.Helper()
	b := s.server.Books()
	b.Received -= neighbour
	b.Accepted -= neighbour
	n := sum.Counters
	if uint64(b.Received) != n.Calls || b.Accepted != sum.Succeeded || uint64(b.Refused429+b.Errors[sim.Overloaded]) != n.Throttled {
		s.t.Errorf("the provider received %d, accepted %d, refused %d and %v;\nwe say %+v", b.Received, b.Accepted, b.Refused429, b.Errors, sum)
	}
	s.comeBack(n, b)
	s.once(sum.Succeeded + neighbour)
}

// comeBack fails the test unless exactly the calls that the provider says it did not
// answer came back, each parked or delayed, and each that was parked given out again.
func (s *storm) comeBack(n batch.Counters, b sim.Books) {
	s.t.Helper()
	unanswered := b.Refused429
	for _, faults := range b.Errors {
		unanswered += faults
	}
	if n.HandedOver != uint64(unanswered) || n.Parked+n.Delayed != n.HandedOver || n.Redistributed != n.Parked || n.Stragglers > n.Throttled || n.Participants < n.Cooldowns {
		s.t.Errorf("the provider did not answer %d calls (refused %d, broke %v);\nwe say %+v", unanswered, b.Refused429, b.Errors, n)
	}
}

// once fails the test unless so many items were answered, each once.
func (s *storm) once(items int) {
	s.t.Helper()
	if b := s.server.Books(); b.Distinct != items || b.MaxRepeats > 1 {
		s.t.Errorf("%d items answered, want %d; one was answered %d times", b.Distinct, items, b.MaxRepeats)
	}
}

func contains(body []byte, text string) bool { return bytes.Contains(body, []byte(text)) }

// numbers are 0 to n-1.
func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// barrier holds each caller until n have arrived.
type barrier struct {
	mu   sync.Mutex
	left int
	open chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{left: n, open: make(chan struct{})} }

func (b *barrier) arrive(ctx context.Context) error {
	b.mu.Lock()
	if b.left--; b.left == 0 {
		close(b.open)
	}
	b.mu.Unlock()
	select {
	case <-b.open:
		return nil
	case <-ctx.Done():
		return errors.New("not all came")
	}
}

// departures are the instants at which calls left.
type departures struct {
	mu sync.Mutex
	at []time.Time
}

func (d *departures) add() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = append(d.at, time.Now())
	return len(d.at)
}
