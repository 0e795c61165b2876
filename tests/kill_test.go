//go:build unix

package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

const (
	// killsPerJob kills fall on a job of killedItems: a job survives several, and
	// several jobs are begun, each with another pace.
	killsPerJob = 10
	killedItems = 3000
)

// However often the command is killed and run again, each item ends with one
// result, its own. What was in the file at a kill is never asked again, and what is
// asked again was on its way at a kill: sent, and not saved.
func TestKilledAtAnyInstant(t *testing.T) {
	kills, seed := setting(t, "KILLS", 20), uint64(setting(t, "KILL_SEED", 1))
	chance := rand.New(rand.NewPCG(seed, 0))
	bin := buildCommand(t)
	var all killTally
	for n := 0; all.kills < kills; n++ {
		j := newJob(t, bin, chance)
		all.add(j.survive(min(killsPerJob, kills-all.kills)))
	}
	t.Logf("seed %d: %d kills in %d jobs, %d of them before the first call of a run; %d calls repeated; at most %d calls were on their way at a kill, with %d allowed in flight",
		seed, all.kills, all.jobs, all.early, all.repeated, all.most, all.allowed)
}

// So it is where results stand in the order of the input, but that those which wait for
// their turn at a kill are asked again, and though some processes write them as they come:
// the one that gets to the end brings the file into order.
func TestKilledInInputOrder(t *testing.T) {
	kills, seed := setting(t, "ORDER_KILLS", 10), uint64(setting(t, "KILL_SEED", 1))
	chance := rand.New(rand.NewPCG(seed, 1))
	bin := buildCommand(t)
	var all killTally
	for n := 0; all.kills < kills; n++ {
		j := newJob(t, bin, chance)
		j.inOrder = true
		all.add(j.survive(min(killsPerJob, kills-all.kills)))
		if got := itemsInOrder(t, j.out); !slices.IsSorted(got) || len(got) != killedItems {
			t.Errorf("%d items, and they do not stand in the order of the input", len(got))
		}
	}
	t.Logf("seed %d: %d kills in %d jobs; %d calls repeated, at most %d of them after one kill, with %d allowed in flight",
		seed, all.kills, all.jobs, all.repeated, all.most, all.allowed)
}

// itemsInOrder are the lines of the input that the results are of, as they stand.
func itemsInOrder(t *testing.T, path string) (numbers []int) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	for line := range bytes.Lines(text) {
		var l journal.Line
		must.Do(t, json.Unmarshal(line, &l))
		numbers = append(numbers, l.Headrace.Line)
	}
	return numbers
}

// killTally sums up the kills of some jobs.
type killTally struct{ jobs, kills, early, repeated, most, allowed int }

func (k *killTally) add(other killTally) {
	k.jobs++
	k.kills += other.kills
	k.early += other.early
	k.repeated += other.repeated
	if other.most > k.most {
		k.most, k.allowed = other.most, other.allowed
	}
}

// job is one prompt file on its way through many processes.
type job struct {
	*testing.T
	chance  *rand.Rand
	args    []string
	out     string
	inFlt   int
	inOrder bool // the last process, and half of the others, run in the order of the input
	server  *witness
	prompts map[string]string // by id

	saved    map[string]int // what the file held after the last process
	received map[string]int // what had been asked by then
	total    int
}

func newJob(t *testing.T, bin string, chance *rand.Rand) *job {
	dir := t.TempDir()
	in := filepath.Join(dir, "prompts.jsonl")
	writeQuestions(t, in, killedItems)
	j := &job{
		T: t, chance: chance, out: filepath.Join(dir, "out.jsonl"), inFlt: 4 << chance.IntN(6),
		server:  newWitness(t, sim.Config{Latency: sim.Latency{Median: time.Duration(chance.IntN(20)) * time.Millisecond, Sigma: 0.4}}),
		prompts: map[string]string{},
	}
	for i := 1; i <= killedItems; i++ {
		j.prompts[idOf(i)] = question(i)
	}
	j.args = []string{bin, "run", in, "-o", j.out, "--base-url", j.server.base, "--model", "m", "--progress", "none", "-c", fmt.Sprint(j.inFlt)}
	return j
}

// survive kills the job up to that many times, and then lets it end.
func (j *job) survive(kills int) (all killTally) {
	all.allowed = j.inFlt
	for range kills {
		killed := j.process(true)
		if !killed {
			break
		}
		all.kills++
		asked, lost := j.counts()
		all.repeated += lost
		if lost > j.inFlt && !j.inOrder {
			j.Errorf("%d calls left no result, with %d allowed in flight", lost, j.inFlt)
		}
		all.most = max(all.most, lost)
		if asked == 0 {
			all.early++
		}
	}
	killed := j.process(false)
	if _, lost := j.counts(); killed || lost != 0 {
		j.Errorf("the last process lost %d results", lost)
	}
	j.complete(all.repeated)
	return all
}

// process runs the command, to its end or until it is killed.
func (j *job) process(kill bool) (killed bool) {
	var args []string
	if j.inOrder && (!kill || j.chance.IntN(2) == 0) {
		args = []string{"--order", "input"}
	}
	var now <-chan struct{}
	if kill {
		now = j.instant()
	}
	return j.processUntil(now, args...)
}

// processUntil runs the command with some more arguments, to its end or until the channel is closed.
func (j *job) processUntil(now <-chan struct{}, more ...string) (killed bool) {
	cmd := exec.Command(j.args[0], append(slices.Clone(j.args[1:]), more...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		j.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	var err error
	select {
	case err = <-over:
	case <-now:
		_ = cmd.Process.Kill() // it may have ended at this very moment
		err = <-over
	}
	var end *exec.ExitError
	if errors.As(err, &end) && end.ExitCode() == -1 {
		killed = true
	} else if err != nil {
		j.Fatalf("%v: %s", err, stderr.Bytes())
	}
	return killed
}

// instant picks when to kill: one time in four early, while files are read and
// locked; else when some more calls have arrived.
func (j *job) instant() <-chan struct{} {
	if j.chance.IntN(4) > 0 {
		return j.server.after(1 + j.chance.IntN(2*killedItems/killsPerJob))
	}
	now := make(chan struct{})
	time.AfterFunc(time.Duration(j.chance.IntN(30_000))*time.Microsecond, func() { close(now) })
	return now
}

// counts compares the file with the books after a process has ended, and tells how
// many calls it made and how many of them left no result. The books are read once:
// a call that a killed process had sent may come in between two looks at them. One
// that comes in later still counts for the next process.
func (j *job) counts() (asked, lost int) {
	j.Helper()
	saved := savedItems(j.T, j.out, j.prompts)
	received, total := j.server.settle()
	for id, before := range j.saved {
		if saved[id] < before {
			j.Errorf("%s was saved and is lost", id)
		}
		if prompt := j.prompts[id]; received[prompt] != j.received[prompt] {
			j.Errorf("%s was saved, and asked again", id)
		}
	}
	asked = total - j.total
	lost = asked - (len(saved) - len(j.saved))
	j.saved, j.received, j.total = saved, received, total
	return asked, lost
}

// complete checks the end of it all.
func (j *job) complete(repeated int) {
	j.Helper()
	for id := range j.prompts {
		if j.saved[id] != 1 {
			j.Errorf("%s has %d results", id, j.saved[id])
		}
	}
	if len(j.saved) != killedItems || j.total != killedItems+repeated {
		j.Errorf("%d items have results, %d calls were made and %d of them repeated", len(j.saved), j.total, repeated)
	}
}
