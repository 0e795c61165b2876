//go:build unix

package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

const (
	// timelineItems are more for each kill than a process has time for.
	timelineItems = 600
	// timelineLatency is the time that an answer takes.
	timelineLatency = 60 * time.Millisecond
	// timelineFlight is the number of calls in flight.
	timelineFlight = 16
	// timelineLife is the longest life of a process before it is killed. Three times in four
	// the life counts from its first call.
	timelineLife = 3 * time.Second
)

// However often a run is killed and gone on with, its timeline can be read, goes on, and
// holds what was answered, but for what came after its latest second.
func TestTimelineOfAKilledRun(t *testing.T) {
	kills, seed := setting(t, "TIMELINE_KILLS", 20), uint64(setting(t, "KILL_SEED", 1))
	k := newTimelineKills(t, rand.New(rand.NewPCG(seed, 2)), kills)
	worst, seconds := 0, 0
	for n := range kills {
		missed, fresh := k.kill(n)
		worst, seconds = max(worst, missed), seconds+fresh
	}
	if seconds == 0 {
		t.Error("no process lived for a second")
	}
	info := must.Get(os.Stat(k.timeline))(t)
	t.Logf("seed %d: %d kills, %d answers in the output, %d in the timeline; %d missing at most after one kill; %d bytes", seed, kills, k.saved, k.recorded, worst, info.Size())
}

// timelineKills is one output on its way through many processes.
type timelineKills struct {
	*testing.T
	chance          *rand.Rand
	args            []string
	out, timeline   string
	saved, recorded int // answers in the output and in the timeline, after the latest process
	samples         int

	mu       sync.Mutex
	arrivals []time.Time   // of calls
	first    chan struct{} // closed at the next one; nil: nobody waits for it
}

func newTimelineKills(t *testing.T, chance *rand.Rand, kills int) *timelineKills {
	dir := t.TempDir()
	k := &timelineKills{T: t, chance: chance, out: filepath.Join(dir, "out.jsonl"), timeline: filepath.Join(dir, "out.run.jsonl")}
	server := httptest.NewServer(http.HandlerFunc(k.answer))
	t.Cleanup(server.Close)
	in := filepath.Join(dir, "prompts.jsonl")
	writeQuestions(t, in, kills*timelineItems)
	k.args = []string{buildCommand(t), "run", in, "-o", k.out, "--base-url", server.URL, "--model", "m", "--progress", "none", "-c", "16"}
	return k
}

func (k *timelineKills) answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	k.mu.Lock()
	k.arrivals = append(k.arrivals, time.Now())
	if k.first != nil {
		close(k.first)
		k.first = nil
	}
	k.mu.Unlock()
	time.Sleep(timelineLatency) // as a provider takes its time
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`)
}

// kill runs one process, kills it, and gives how many answers its timeline missed, and how
// many seconds it told.
func (k *timelineKills) kill(n int) (missed, seconds int) {
	k.Helper()
	began := time.Now()
	cmd := exec.Command(k.args[0], k.args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	over := k.killLater(cmd.Process)
	_ = cmd.Wait()
	close(over)
	if code := cmd.ProcessState.ExitCode(); code != -1 || strings.Contains(stderr.String(), "timeline") {
		k.Fatalf("kill %d: exit code %d: %s", n, code, stderr.Bytes())
	}
	saved, recorded := k.linesSaved(), 0
	latest := began
	samples := 0
	for _, s := range k.samplesRecorded() {
		recorded, samples = recorded+s.Answered, samples+1
		if s.At.After(latest) {
			latest = s.At
		}
	}
	missed, seconds = (saved-k.saved)-(recorded-k.recorded), samples-k.samples
	after := k.arrivedSince(latest)
	if most := after + 2*timelineFlight; missed > most || missed < -2*timelineFlight || seconds < 0 {
		k.Errorf("kill %d: %d are in the output and not in the timeline, %d calls came after its latest second; %d samples more", n, missed, after, seconds)
	}
	k.saved, k.recorded, k.samples = saved, recorded, samples
	k.ask()
	return missed, seconds
}

// killLater kills a process after a while, unless over is closed before.
func (k *timelineKills) killLater(p *os.Process) (over chan struct{}) {
	over = make(chan struct{})
	begun, life := make(chan struct{}), time.Duration(k.chance.Int64N(int64(timelineLife)))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first = begun; k.chance.IntN(4) == 0 {
		k.first = nil
		close(begun)
	}
	go func() {
		select {
		case <-begun:
		case <-over:
			return
		}
		select {
		case <-time.After(life):
			_ = p.Kill() // it may have ended at this very moment
		case <-over:
		}
	}()
	return over
}

// ask has the command read the timeline, once there is one that says how a run stood.
func (k *timelineKills) ask() {
	k.Helper()
	const killed = 130 // the exit code of a run that was interrupted or killed
	text, err := exec.Command(k.args[0], "status", k.out, "--json").Output()
	ended, failed := errors.AsType[*exec.ExitError](err)
	if k.samples > 0 && (!failed || ended.ExitCode() != killed || !bytes.HasPrefix(text, []byte(`{"event":"progress",`)) || !bytes.Contains(text, []byte(`"state":"killed"`))) {
		k.Errorf("status: %v: %s", err, text)
	}
}

func (k *timelineKills) linesSaved() int {
	text, err := os.ReadFile(k.out)
	if err != nil && !os.IsNotExist(err) {
		k.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

type recordedSample struct {
	Event    string    `json:"event"`
	At       time.Time `json:"at"`
	Answered int       `json:"answered"`
}

// samplesRecorded are those of the timeline. Its lines are whole, but for the end that a kill
// left.
func (k *timelineKills) samplesRecorded() (all []recordedSample) {
	text, err := os.ReadFile(k.timeline)
	if err != nil && !os.IsNotExist(err) {
		k.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for n, line := range lines {
		var s recordedSample
		if err := json.Unmarshal(line, &s); err != nil && n < len(lines)-3 {
			k.Fatalf("line %d is not JSON: %v: %s", n+1, err, line)
		}
		if s.Event == "sample" {
			all = append(all, s)
		}
	}
	return all
}

func (k *timelineKills) arrivedSince(at time.Time) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.arrivals {
		if a.After(at) {
			n++
		}
	}
	return n
}
