//go:build linux

package tests

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A limit that halves costs one wave of refusals and no more, however many workers there are;
// what is left of it is used, and so is one that doubles.
func TestTheLimitHalvesAndDoubles(t *testing.T) {
	t.Parallel()
	const halves, doubles = 8 * time.Second, 20 * time.Second
	config := strict(time.Second)
	config.RetryAfter = sim.Always
	config.Changes = []sim.Change{{At: halves, RPM: rate * 60 / 2}, {At: doubles, RPM: rate * 60}}
	f := newFleet(t, plan{workers: 4, inFlight: 64, provider: config})
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "halves", 28*rate)
	customer, output := f.customer(q, "out")
	f.delivers(q, customer, output)
	v := f.judged(true)
	book := f.judge.book()
	stalled := f.late.bunched(rate) // after a stall there may be a wave of these
	if w := waves(book); len(w) > 1 && stalled == 0 || v.refused > maxWave+stalled {
		t.Errorf("%d refusals in waves %v, want one wave", v.refused, w)
	}
	for _, c := range []struct {
		from, until time.Duration
		granted     float64
	}{{halves + adapts, doubles, rate / 2}, {doubles + adapts, doubles + 2*adapts, rate}} {
		_, calls := f.share("", f.judge.began.Add(c.from), f.judge.began.Add(c.until))
		if used := float64(calls) / (c.until - c.from).Seconds() / c.granted; used < 0.8 && stalled == 0 {
			t.Errorf("from %v on %.2f of the limit is used", c.from, used)
		} else {
			t.Logf("from %v on %.2f of the limit is used", c.from, used)
		}
	}
}

// adapts is within what a limit that changed is used again: a wave, its wait and the climb.
const adapts = 4 * time.Second

// maxWave bounds one wave: two hops of traffic and the permits on their way (SCALE 5.5: at 500
// calls/s some 50, 110 at worst), at this rate and a bucket of a second that has run dry.
const maxWave = 60

// waves counts refusals that came one after the other, by the seconds in which each began.
func waves(book []call) (sizes []int) {
	var last time.Time
	for _, c := range book {
		if !c.refused() {
			continue
		}
		if len(sizes) == 0 || c.at.Sub(last) > 2*time.Second {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
		last = c.at
	}
	return sizes
}

// A balance that is used up ends every job on it with 3, and nobody goes on asking.
func TestQuotaEndsEverything(t *testing.T) {
	t.Parallel()
	config := strict(time.Second)
	config.QuotaAfter = 5 * rate
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: config})
	var customers []*process
	for _, name := range []string{"a", "b"} {
		q := writeQuestions(t, filepath.Join(f.dir, name+".in.jsonl"), name, 20*rate)
		p, _ := f.customer(q, name)
		customers = append(customers, p)
	}
	for _, p := range customers {
		if code := f.finishes(p); code != 3 {
			t.Errorf("%s ends with %d, want 3", p.name, code)
		}
	}
	book, empty := settled(t, f.judge), 0
	for _, c := range book {
		if c.refused() {
			empty++
		}
	}
	t.Logf("%d calls, %d of them with the balance used up", len(book), empty)
	if most := f.plan.workers * f.plan.inFlight; empty > most {
		t.Errorf("%d calls with the balance used up, want what was in flight: %d at most", empty, most)
	}
}

// A job that comes later has its part by weight of a limit that both share, though an hour of work is before it.
func TestALaterJobHasItsShare(t *testing.T) {
	t.Parallel()
	f := occupied(t)
	share := f.laterShare("--weight", "9", "--limit-name", "org")
	if share < 0.8 || share > 0.97 {
		t.Errorf("share %.3f, want 0.9", share)
	}
}

// A job under a limit of its own calls as if it were alone, whatever waits for another limit.
func TestAnotherLimitIsNotDelayed(t *testing.T) {
	t.Parallel()
	f := occupied(t)
	share := f.laterShare("--limit-name", "another")
	if share < 0.4 || share > 0.6 {
		t.Errorf("share %.3f of what two limits of one height let through, want 0.5", share)
	}
}

// laterShare submits another job, and gives its share of the calls from when it is there.
func (f *fleet) laterShare(flags ...string) float64 {
	f.t.Helper()
	late := writeQuestions(f.t, filepath.Join(f.dir, "late.in.jsonl"), "late", 500)
	submitted := time.Now()
	f.customer(late, "late", flags...)
	first := f.firstCall("late")
	from := first.Add(settling)
	waits(f.hubs[0].over, from.Add(occupiedFor))
	share, calls := f.share("late", from, from.Add(occupiedFor))
	f.t.Logf("its first call after %v; its share of %d calls in %v: %.3f", first.Sub(submitted), calls, occupiedFor, share)
	return share
}

// slowly is a provider that is never in the way, and answers as slowly as most.
var slowly = sim.Config{Latency: sim.Latency{Median: 200 * time.Millisecond, Sigma: 0.3}}

// occupiedFor is the time over which shares are measured.
const occupiedFor = 15 * time.Second

// occupied is a fleet at work on an hour of 20,000 lines.
func occupied(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: slowly, limitFlags: []string{"--rpm", "333"}})
	hour := writeQuestions(t, filepath.Join(f.dir, "hour.in.jsonl"), "hour", 20_000)
	f.customer(hour, "hour", "--weight", "1")
	f.firstCall("hour")
	<-f.judge.after(f.judge.asked() + 50)
	return f
}

// Two jobs share a limit by their weights from when the second joins, and one that is
// cancelled makes no more calls than were in flight.
func TestJobsShareByWeight(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: strict(time.Second)})
	measured := usually(20*time.Second, 30*time.Second)
	// Both have work for as long as is measured: the one a quarter of the limit after the second
	// has joined, and all of it before; the other the rest.
	light := writeQuestions(t, filepath.Join(f.dir, "light.in.jsonl"), "light", int((measured.Seconds()/4+15)*rate))
	heavy := writeQuestions(t, filepath.Join(f.dir, "heavy.in.jsonl"), "heavy", int((measured.Seconds()+10)*rate))
	first, output := f.customer(light, "light", "--weight", "1")
	<-f.judge.after(3 * rate)
	second, _ := f.customer(heavy, "heavy", "--weight", "3")
	joined := f.firstCall("heavy").Add(settling)
	waits(first.over, joined.Add(measured))
	share, calls := f.share("heavy", joined, joined.Add(measured))
	t.Logf("%d calls in %v: share of the one with weight 3 of 4: %.4f", calls, measured, share)
	// Shares are of a limit that binds. Where the machine is too busy to reach the limit, the
	// slower job leaves the other a part of its share.
	within := 0.03
	if calls < int(measured.Seconds()*rate*97/100) {
		within = 0.15
	}
	if math.Abs(share-0.75) > within {
		t.Errorf("share %.4f of %d calls, want 0.75 ± %.2f", share, calls, within)
	}
	f.cancels(second, "heavy")
	f.delivers(light, first, output)
	f.judged(false)
}

// settling is within what shares become what they should be: some of the keeper's turns.
const settling = 2 * time.Second

// firstCall waits for a job's first call.
func (f *fleet) firstCall(tag string) time.Time {
	f.t.Helper()
	for range 1000 {
		for _, c := range f.judge.book() {
			if strings.HasPrefix(c.prompt, tag) {
				return c.at
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.t.Fatalf("no call of %s", tag)
	return time.Time{}
}

// share returns the part of the calls in a time that were a job's, and the number of all calls.
func (f *fleet) share(tag string, from, until time.Time) (share float64, calls int) {
	its := 0
	for _, c := range f.judge.book() {
		if c.at.Before(from) || !c.at.Before(until) {
			continue
		}
		calls++
		if strings.HasPrefix(c.prompt, tag) {
			its++
		}
	}
	return float64(its) / float64(calls), calls
}

// cancels ends a job. What was in flight is finished, and from two seconds on nothing of it is
// asked: as long as permits are good.
func (f *fleet) cancels(customer *process, tag string) {
	f.t.Helper()
	text, code := f.run("jobs", "cancel", f.jobOf(customer), "--cluster", f.url())
	if code != 0 {
		f.t.Errorf("cancel: exit %d: %s", code, text)
	}
	at := time.Now()
	code = customer.ends(comeUp)
	f.t.Logf("the customer of the cancelled job ends with %d", code)
	if code == 0 {
		f.t.Error("a cancelled job ends as if it were whole")
	}
	for _, c := range f.judge.book() {
		if since := c.at.Sub(at); strings.HasPrefix(c.prompt, tag) && since > stops+f.late.allowance() {
			f.t.Fatalf("a call of the cancelled job %v later", since)
		}
	}
}

// jobOf is the name of the job that a customer has submitted: its first line.
func (f *fleet) jobOf(customer *process) string {
	f.t.Helper()
	file, err := os.Open(customer.said)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan()
	return strings.TrimSpace(lines.Text())
}
