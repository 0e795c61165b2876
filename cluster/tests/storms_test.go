//go:build linux

package tests

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// rate is the number of calls a second that the providers of the storms grant. It is so low that the machine does not
// bind, and so high that each blow finds calls in flight.
const rate = 150

// strict is a provider with a bucket so deep, which says in headers what is left of it.
func strict(depth time.Duration) sim.Config {
	return sim.Config{
		RPM: rate * 60, Burst: depth, Headers: true,
		Latency: sim.Latency{Median: 300 * time.Millisecond, Sigma: 0.4},
	}
}

// silent says nothing of its limit: the user knows it, and tells each worker.
func silent(depth time.Duration) (config sim.Config, flags []string) {
	config = strict(depth)
	config.Headers, config.Terse = false, true
	return config, []string{"--rpm", "9000"}
}

// A gale is a storm and the fleet that goes through it.
type gale struct {
	plan   plan
	length time.Duration // of the work at the provider's rate, a full bucket less; by hand it is longer
	habits []habit
	struck int  // at least so many blows, or it proved nothing
	untold bool // nobody tells the limit, and nothing shows it: refusals do
}

// goThrough lets a fleet work through a storm, and holds what it made against what one process
// makes, and what it did against the books.
func (g gale) goThrough(t *testing.T) verdict {
	t.Helper()
	if !g.untold { // on a busy machine refusals are heard late, and each search costs a second wave of them
		t.Parallel() // they mostly wait for the provider
	}
	chance := seeded(t)
	length := usually(g.length, lengthSaid())
	f := newFleet(t, g.plan)
	items := int(length.Seconds() * rate)
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "storm", items)
	customer, output := f.customer(q, "out")
	first := rate // blows before the first call would strike nobody's work
	if g.untold {
		first = 20 // what nobody tells is felt for, from two calls a second on
	}
	f.begun(first, customer)
	f.weather(schedule(chance, 10*length, g.habits...), customer.over)
	f.delivers(q, customer, output)
	v := f.judged(g.untold)
	if n := f.struck(); n < g.struck {
		t.Errorf("%d blows, want %d at least: the storm proves nothing", n, g.struck)
	}
	return v
}

// struck returns the number of blows.
func (f *fleet) struck() (n int) {
	for _, times := range f.strikes {
		n += times
	}
	return n
}

// delivers waits for a job's end and holds its files against those of one process.
func (f *fleet) delivers(q *questionnaire, customer *process, output string) {
	f.t.Helper()
	code := f.finishes(customer)
	one, want := f.reference(q, filepath.Base(output))
	if code != want {
		f.t.Errorf("exit %d, one process ends with %d", code, want)
	}
	sameFiles(f.t, output, one)
	f.nothingIsLeft(q, output, want)
}

// nothingIsLeft runs one process over the files that were fetched: it has nothing to ask.
func (f *fleet) nothingIsLeft(q *questionnaire, output string, want int) {
	f.t.Helper()
	calls := f.judge.asked()
	text, code := f.run("run", q.path, "-o", output, "--base-url", f.judge.base("later"), "--progress", "none")
	if n := f.judge.asked() - calls; n != 0 || code != want {
		f.t.Errorf("one process after it asks %d calls and ends with %d: %s", n, code, text)
	}
}

const (
	often  = 5 * time.Second
	seldom = 7 * time.Second // two in the shortest of the storms, whatever the chance
	brief  = 2 * time.Second
	// beyond is longer than any lease: what was silent for so long has been replaced.
	beyond = 2 * ackWait
)

func TestWorkersAreKilled(t *testing.T) {
	gale{
		plan:   plan{workers: 4, inFlight: 64, provider: strict(time.Second)},
		length: 20 * time.Second, struck: 2,
		habits: []habit{{aWorker, killing, often, brief}},
	}.goThrough(t)
}

func TestKeepersAreKilled(t *testing.T) {
	provider, flags := silent(5 * time.Second)
	gale{
		plan:   plan{workers: 4, inFlight: 64, provider: provider, limitFlags: flags},
		length: 25 * time.Second, struck: 2,
		habits: []habit{{theKeeper, killing, seldom, brief}},
	}.goThrough(t)
}

func TestTheHubIsKilled(t *testing.T) {
	v := gale{
		plan:   plan{workers: 4, inFlight: 64, provider: strict(5 * time.Second)},
		length: 25 * time.Second, struck: 2,
		habits: []habit{{aHub, killing, seldom, brief}},
	}.goThrough(t)
	if v.repeated > 0 {
		t.Errorf("%d calls repeated, though no worker died", v.repeated)
	}
}

func TestEverybodyIsKilled(t *testing.T) {
	gale{
		plan:   plan{workers: 5, inFlight: 64, provider: strict(time.Second)},
		length: 30 * time.Second, struck: 5,
		habits: []habit{{aWorker, killing, 7 * time.Second, brief}, {theKeeper, killing, 15 * time.Second, brief}, {aHub, killing, 12 * time.Second, brief}},
	}.goThrough(t)
}

// Refusals are all that tells the limit, so they are among the first news that a keeper hears of the calls of the one before.
// A call of a worker that was killed is counted by the provider, and no keeper hears of it: each may cost one refusal more.
func TestTheLimitIsUnknown(t *testing.T) {
	provider, _ := silent(time.Second)
	v := gale{
		plan:   plan{workers: 4, inFlight: 64, provider: provider},
		length: 30 * time.Second, struck: 3, untold: true,
		habits: []habit{{aWorker, killing, seldom, brief}, {theKeeper, killing, 12 * time.Second, brief}},
	}.goThrough(t)
	if v.refused == 0 || v.refused > v.calls/20+v.hands {
		t.Errorf("%d of %d calls refused, want some, and not one in twenty beyond the %d that died with their workers", v.refused, v.calls, v.hands)
	}
}

func TestWorkersDrain(t *testing.T) {
	v := gale{
		plan:   plan{workers: 4, inFlight: 64, provider: strict(5 * time.Second)},
		length: 20 * time.Second, struck: 2,
		habits: []habit{{aWorker, draining, often, often}},
	}.goThrough(t)
	if v.repeated > 0 {
		t.Errorf("%d calls repeated, though everybody finished what was in flight", v.repeated)
	}
}

func TestWorkersFreeze(t *testing.T) {
	gale{
		plan:   plan{workers: 4, inFlight: 64, provider: strict(5 * time.Second)},
		length: 30 * time.Second, struck: 2,
		habits: []habit{{aWorker, freezing, 8 * time.Second, beyond}},
	}.goThrough(t)
}

func TestTheKeeperFreezes(t *testing.T) {
	provider, flags := silent(time.Second)
	gale{
		plan:   plan{workers: 4, inFlight: 64, provider: provider, limitFlags: flags},
		length: 30 * time.Second, struck: 2,
		habits: []habit{{theKeeper, freezing, 9 * time.Second, beyond}},
	}.goThrough(t)
}

func TestTheHubFreezes(t *testing.T) {
	v := gale{
		plan:   plan{workers: 4, inFlight: 64, provider: strict(time.Second)},
		length: 30 * time.Second, struck: 2,
		habits: []habit{{aHub, freezing, 10 * time.Second, 6 * time.Second}},
	}.goThrough(t)
	if v.repeated > 0 {
		t.Errorf("%d calls repeated, though every worker lived", v.repeated)
	}
}

// Of three hubs one may die, and freeze: the others go on. The chunks of a worker that a frozen hub keeps from the others for
// ackWait, less a heartbeat, are given to another, and calls in its hands are repeated: so it freezes for less.
func TestOneOfThreeHubs(t *testing.T) {
	for h, away := range map[harm]time.Duration{killing: 3 * time.Second, freezing: brief} {
		t.Run(string(h), func(t *testing.T) {
			v := gale{
				plan:   plan{hubs: 3, workers: 3, inFlight: 64, provider: strict(5 * time.Second)},
				length: 20 * time.Second, struck: 1,
				habits: []habit{{aHub, h, 7 * time.Second, away}},
			}.goThrough(t)
			if v.repeated > 0 {
				t.Errorf("%d calls repeated, though no worker died", v.repeated)
			}
		})
	}
}

func TestWorkersAreCutOff(t *testing.T) {
	gale{
		plan:   plan{workers: 4, inFlight: 64, provider: strict(5 * time.Second), links: true},
		length: 30 * time.Second, struck: 2,
		habits: []habit{{aWorker, cutting, 8 * time.Second, beyond}},
	}.goThrough(t)
}

func TestTheKeeperIsCutOff(t *testing.T) {
	gale{
		plan:   plan{workers: 4, inFlight: 64, provider: strict(time.Second), links: true},
		length: 20 * time.Second, struck: 2,
		habits: []habit{{theKeeper, cutting, 10 * time.Second, beyond}, {aWorker, slowing, 10 * time.Second, 4 * time.Second}},
	}.goThrough(t)
}

// The hub's store is one of conveniences: whatever becomes of it, nobody's hand is needed.
func TestTheHubsStoreIsDamaged(t *testing.T) {
	for _, h := range []harm{wiping, tearing, flipping} {
		t.Run(string(h), func(t *testing.T) {
			v := gale{
				plan:   plan{workers: 3, inFlight: 64, provider: strict(5 * time.Second)},
				length: 24 * time.Second, struck: 1,
				habits: []habit{{aHub, h, 11 * time.Second, brief}}, // a lease that was lost takes 4 s to be another's
			}.goThrough(t)
			if v.repeated > 0 {
				t.Errorf("%d calls repeated, though no worker died", v.repeated)
			}
		})
	}
}
