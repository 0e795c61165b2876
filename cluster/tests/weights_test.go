package tests

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
