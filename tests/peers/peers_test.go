package peers

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the script sets up; both sides must agree.
const (
	perSecond = 100 // requests that each peer allows
	times     = 10  // as fast as real time is the law's clock
	rpm       = perSecond * 60 / times
	latency   = 100 * time.Millisecond
	conns     = 256 // kept open: as many as are in flight when a deep bucket is sounded
)

// A peer is a limiter, and the number of calls it lets through at once after a pause.
type peer struct {
	name, env string
	saved     float64
	burst     time.Duration // given to the law, by its clock; 0: not given
	slip      float64       // share of the items that may be refused though the law knows the limit
}

// Two of each: told and not told run at the same time, and each has a server that
// counts for it alone.
var peers = []peer{
	{"nginx", "PEERS_NGINX", 50, 0, 0},
	// A window that slides has nothing saved up: what leaves at once is missing for
	// the whole of its six seconds. It also estimates how much of the window before
	// still counts, so who uses all of a limit is, now and then, a call over it.
	{"haproxy", "PEERS_HAPROXY", 0, 0, 0.004},
	{"sim", "PEERS_SIM", 2 * perSecond, 20 * time.Second, 0},
}

// bounds are wide where the machine is shared and the run is short: what the law
// costs at the start is spread over few items. It takes some hundred refusals to find a
// limit, however many items there are, and by chance half as many again.
type bounds struct {
	informed, untold float64
	refused          float64 // share of the items, not told
}

func allowed(items int) bounds {
	if items < 10000 || os.Getenv("CI") != "" {
		return bounds{informed: 1.08, untold: 1.12, refused: 0.08}
	}
	return bounds{informed: 1.03, untold: 1.06, refused: 0.02}
}

// tries are how often the time is measured at most: a machine that is busy with other things
// lets a server and a run wait for each other. What is refused counts in each of them.
const tries = 3

// refilled is after how long each server lets in again what it lets in at first: the window of
// HAProxy is the longest.
const refilled = 7 * time.Second

// Told the limit, the law is not refused and uses what there is; not told, it
// finds the limit for a refusal in a hundred at most. Nothing is lost.
func TestPeers(t *testing.T) {
	if os.Getenv("PEERS") == "" {
		t.Skip("needs nginx, HAProxy and headrace sim: tests/peers/run starts them")
	}
	items, err := strconv.Atoi(os.Getenv("PEERS_ITEMS"))
	if err != nil {
		t.Fatal(err)
	}
	b := allowed(items)
	for _, p := range peers {
		for _, informed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, told=%v", p.name, informed), func(t *testing.T) {
				t.Parallel()
				url := os.Getenv(p.env + map[bool]string{true: "_TOLD", false: "_UNTOLD"}[informed])
				if url == "" {
					t.Skipf("%s does not run here", p.name)
				}
				ratio, refused := b.untold, b.refused*float64(items)
				if informed {
					ratio, refused = b.informed, p.slip*float64(items)
				}
				for try := 1; ; try++ {
					f := measure(t, p, url, informed, items)
					t.Logf("%s told=%v: %d items, ratio %.3f, %d refused", p.name, informed, items, f.ratio, f.refused)
					if float64(f.refused) > refused {
						t.Errorf("%d refused, want at most %.0f", f.refused, refused)
					}
					if f.ratio <= ratio {
						return
					}
					if try == tries {
						t.Fatalf("ratio %.3f, want at most %.2f, in %d tries", f.ratio, ratio, tries)
					}
					time.Sleep(refilled)
				}
			})
		}
	}
}

type figures struct {
	ratio   float64
	refused uint64
}

// measure runs a batch there. The optimum is one who spends what is saved up at
// once, and then each call as it is let in.
func measure(t *testing.T, p peer, url string, informed bool, items int) figures {
	t.Helper()
	client, err := openai.New(openai.Config{BaseURL: url, Transport: newMute()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdle()
	lane := machine.LaneConfig{}
	if informed {
		lane.Limits = limiter.Limits{RPM: rpm, Burst: p.burst}
	}
	var sum batch.Summary
	seen, begun := make([]bool, items), time.Now()
	for r, err := range batch.Stream(t.Context(), numbers(items), ask(client),
		batch.WithLaneDefaults(lane), batch.WithClock(newFast(times)), batch.WithConcurrency(1000), batch.WithSummary(&sum)) {
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		if seen[r.Item] {
			t.Fatalf("item %d came twice", r.Item)
		}
		seen[r.Item] = true
	}
	took := time.Since(begun)
	if sum.Succeeded != items {
		t.Fatalf("%d of %d answered", sum.Succeeded, items)
	}
	optimum := (float64(items)-p.saved)/perSecond + latency.Seconds()
	return figures{ratio: took.Seconds() / optimum, refused: sum.Counters.Throttled}
}

func ask(client *openai.Client) batch.Func[int, provider.Reply] {
	return func(ctx context.Context, i int) (provider.Reply, error) {
		return client.Do(ctx, provider.Request{
			Endpoint: "/v1/chat/completions", Model: "m",
			Body: fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"question %d"}]}`, i),
		})
	}
}

func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
