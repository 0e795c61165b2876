package timeline

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// childFile names the variable that makes the test binary a run: its value is the timeline,
// and the output lies next to that.
const childFile = "TIMELINE_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childFile); name != "" {
		child(name)
		return
	}
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// aSample is the n-th second of a run, with as much in it as there can be.
func aSample(n int, chance *rand.Rand) observe.Sample {
	s := observe.Sample{
		At: noon.Add(time.Duration(n) * time.Second), Elapsed: float64(n), Span: 1,
		Answered: chance.IntN(50), Failed: chance.IntN(2), Calls: chance.IntN(60), Throttled: chance.IntN(3), Broke: chance.IntN(3),
		InputTokens: chance.Int64N(50_000), OutputTokens: chance.Int64N(10_000), USD: float64(chance.IntN(1e6)) / 1e9, Unpriced: chance.IntN(2),
		InFlight: float64(chance.IntN(64_000)) / 1e3, InFlightMost: 64, Waiting: 1024, Parked: float64(chance.IntN(10)), Allowed: float64(1+chance.IntN(100_000)) / 1e3, AllowedSpan: []float64{1, 0.5}[chance.IntN(2)],
		Bounds: observe.Ledger{limiter.BoundRequests: 700 * time.Millisecond, limiter.BoundTokens: 200 * time.Millisecond, limiter.BoundConcurrency: 100 * time.Millisecond},
	}
	for number := 60; number < 60+chance.IntN(12); number++ {
		s.Latency = append(s.Latency, observe.Bucket{Number: number, Count: 1 + chance.IntN(9)})
	}
	for _, name := range []string{"openai/gpt-4o-mini", "openai/gpt-4o", "openai/o3-mini", "openai/gpt-4.1"} {
		s.Lanes = append(s.Lanes, observe.LaneSample{
			Name: name, Phase: "flowing", Answered: chance.IntN(20), Throttled: chance.IntN(2),
			Limits: map[string]float64{"requests": float64(chance.IntN(10_000)) / 1e3, "tokens": float64(chance.IntN(33_000_000)) / 1e3},
		})
	}
	return s
}

func newChance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// aProgress returns how a run stands after so many items.
func aProgress(done int) *event.Progress {
	return &event.Progress{
		Event: "progress", At: event.Stamp(noon), State: "running", Done: done, Input: "prompts.jsonl", Output: "results.jsonl",
		BoundText: "the provider's limit on requests: 588 of 600 a minute (its headers)", Lanes: []event.Lane{}, Failures: []event.Failure{},
	}
}

func tempPath(t *testing.T) string { return filepath.Join(t.TempDir(), "results.run.jsonl") }

// begun is a timeline in a file, its run just begun.
func begun(t *testing.T, path string) *file {
	t.Helper()
	f, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close() })
	must(t, f.start(aHead(t), news(0)))
	return f
}

func aHead(t *testing.T) head {
	t.Helper()
	h, err := newHead(map[string]string{"event": "start", "run": "a"}, "", 1)
	must(t, err)
	return h
}

func news(done int) []byte {
	line, err := json.Marshal(aProgress(done))
	if err != nil {
		panic(err)
	}
	return append(line, '\n')
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// samplesIn are those of a file, each of whose lines must be one of ours, and the last a
// progress.
func samplesIn(t *testing.T, path string) (all []observe.Sample) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	latest := unknown
	for line := range bytes.Lines(text) {
		p := parse(bytes.TrimSuffix(line, []byte("\n")))
		switch latest = p.kind; latest {
		case unknown:
			t.Fatalf("a line that is none: %s", line)
		case sample:
			all = append(all, *p.sample)
		}
	}
	if latest != progress {
		t.Fatal("the last line is no progress")
	}
	return all
}

func answeredIn(all []observe.Sample) (n int) {
	for _, s := range all {
		n += s.Answered
	}
	return n
}
