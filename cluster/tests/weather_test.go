package tests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// weather goes through the steps of a schedule until there are no more or the work is done,
// and then makes everybody whole again.
func (f *fleet) weather(steps []step, done <-chan struct{}) {
	f.t.Helper()
	ends := map[int]func(){}
	began := time.Now()
	for i, s := range steps {
		if !waits(done, began.Add(s.at)) || f.died() != "" {
			break // and finishes will say who
		}
		if s.begin < 0 {
			ends[i] = f.begin(s)
			continue
		}
		if end := ends[s.begin]; end != nil {
			end()
		}
		delete(ends, s.begin)
	}
	for _, end := range ends {
		if end != nil {
			end()
		}
	}
}

// begun waits until so many calls have come. It fails the test if they do not.
func (f *fleet) begun(calls int, customer *process) {
	f.t.Helper()
	timer := time.NewTimer(comeUp)
	defer timer.Stop()
	select {
	case <-f.judge.after(calls):
	case <-customer.over:
	case <-timer.C:
		for _, w := range f.workers {
			f.t.Logf("%s is running: %v (code %d)", w.name, w.running(), w.code)
		}
		f.t.Fatalf("%d calls in %v", f.judge.asked(), comeUp)
	}
}

// waits until an instant, and says whether it came before the end.
func waits(done <-chan struct{}, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C:
		return true
	}
}

// stuck is for how long nothing may happen at the provider while there is work: many times
// whatever a lease, a redelivery and a restart take.
const stuck = 2 * time.Minute

// finishes waits for a customer, and gives its exit code. It fails the test if the provider is
// asked nothing for too long.
func (f *fleet) finishes(p *process) int {
	f.t.Helper()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	asked, since := f.judge.asked(), time.Now()
	for {
		select {
		case <-p.over:
			return p.code
		case <-look.C:
		}
		if dead := f.died(); dead != "" {
			f.t.Fatalf("%s has ended by itself", dead)
		}
		if n := f.judge.asked(); n != asked {
			asked, since = n, time.Now()
		}
		if time.Since(since) > stuck {
			f.t.Fatalf("nothing has been asked for %v: %d calls so far", stuck, asked)
		}
	}
}

// died is one that ended though nobody struck it: none, if "".
func (f *fleet) died() string {
	for _, h := range f.hubs {
		if !h.struck && !h.running() {
			return h.name
		}
	}
	for _, w := range f.workers {
		if !w.struck && !w.running() {
			return w.name
		}
	}
	return ""
}

// judged reads the books at the end, and fails the test if anything was done that must not be.
func (f *fleet) judged(refusals bool) verdict {
	f.t.Helper()
	f.audit.late = f.late.allowance()
	v := f.audit.judge(f.judge.book())
	f.t.Logf("%d calls, %d refused, %d repeated; in flight at %d blows %d, of %d that may have been; last call of one that had lost the keeper after %v (allowed %v); first call after each absence %v; %v",
		v.calls, v.refused, v.repeated, len(f.audit.blows), v.hands, v.may, v.lastAfterCutOff, stops+f.audit.late, v.back, f.strikes)
	complain(f.t, "call that need not have been repeated", v.inexcusable)
	complain(f.t, "call without the keeper", v.afterwards)
	if v.repeated > v.may {
		f.t.Errorf("%d calls repeated, %d may have been in flight at the blows", v.repeated, v.may)
	}
	if v.refused > f.late.bunched(rate) && !refusals {
		f.t.Errorf("%d refusals", v.refused)
	}
	if f.t.Failed() {
		f.t.Logf("by the seconds since %s:\n%s", f.judge.began.Format(clockTime), f.story())
	}
	return v
}

// clockTime is the format of instants.
const clockTime = "15:04:05.000"

// story lists the beginnings of waves of refusals, and the times of blows and healing.
func (f *fleet) story() string {
	var story []string
	at := func(t time.Time, what string) {
		story = append(story, fmt.Sprintf("%9.3f %s", t.Sub(f.judge.began).Seconds(), what))
	}
	calls, refused := map[int]int{}, map[int]int{} // by tenths of a second
	for _, c := range f.judge.book() {
		tenth := int(c.at.Sub(f.judge.began) / (time.Second / 10))
		if calls[tenth]++; c.refused() {
			refused[tenth]++
		}
	}
	for tenth, n := range refused {
		at(f.judge.began.Add(time.Duration(tenth)*time.Second/10), fmt.Sprintf("%d of %d calls are refused, after %d calls in the second before", n, calls[tenth], sumOf(calls, tenth-10, tenth)))
	}
	epochs, _ := filepath.Glob(filepath.Join(f.home, "keeper", "epoch-*")) // the pattern is good
	for _, e := range epochs {
		if info, err := os.Stat(e); err == nil {
			name, _ := os.ReadFile(e)
			at(info.ModTime(), fmt.Sprintf("a keeper begins: %s %s", filepath.Base(e), bytes.TrimSpace(name)))
		}
	}
	for _, b := range f.audit.blows {
		at(b.at, b.kind+" "+b.who)
		at(b.until, b.who+" is whole again")
	}
	for _, a := range f.audit.absences {
		at(a.from, a.who+" cannot reach the keeper")
	}
	slices.Sort(story) // the numbers are as wide as each other
	return strings.Join(story, "\n")
}

func sumOf(of map[int]int, from, until int) (sum int) {
	for i := from; i < until; i++ {
		sum += of[i]
	}
	return sum
}

func complain(t *testing.T, what string, told []string) {
	t.Helper()
	for _, one := range told[:min(shown, len(told))] {
		t.Errorf("%s: %s", what, one)
	}
	if len(told) > shown {
		t.Errorf("%s: %d in all", what, len(told))
	}
}

// reference returns one process's output for the same file, and its exit code.
func (f *fleet) reference(q *questionnaire, name string) (output string, code int) {
	f.t.Helper()
	one := newJudge(f.t, simple)
	output = f.dir + "/" + name + ".one.jsonl"
	_, code = f.run("run", q.path, "-o", output, "--order", "input", "--base-url", one.base("one"), "--progress", "none")
	return output, code
}
