package tests

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A cluster that keeps its promises passes a storm of everything, and one that breaks one does
// not: so a storm that is passed says something.
func TestHarnessFindsBrokenPromises(t *testing.T) {
	onlyLong(t)
	for _, c := range []struct {
		fault string
		found func(v verdict, files []string) bool
	}{
		{"", func(v verdict, files []string) bool {
			return len(v.inexcusable)+len(v.afterwards)+len(files) > 0 || v.repeated > v.may
		}},
		{buysTwice, func(v verdict, _ []string) bool { return len(v.inexcusable) > 0 }},
		{goesOn, func(v verdict, _ []string) bool { return len(v.afterwards) > 0 }},
		{losesOne, func(_ verdict, files []string) bool { return len(files) > 0 }},
		{turnsRound, func(_ verdict, files []string) bool { return len(files) > 0 }},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			v, files := throughStorm(t, c.fault)
			if found := c.found(v, files); found != (c.fault != "") {
				t.Errorf("found %v: %+v\n%v", found, v, files)
			}
		})
	}
}

// throughStorm lets a fake cluster work through blows of every kind, and tells what was found.
func throughStorm(t *testing.T, fault string) (verdict, []string) {
	t.Helper()
	f := unstarted(t, plan{
		workers: 4, inFlight: fakeLanes, links: true,
		provider: sim.Config{Latency: sim.Latency{Median: 300 * time.Millisecond}},
	})
	f.command, f.env = os.Args[0], []string{fakeEnv + "=cluster", faultEnv + "=" + fault}
	f.launch()
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "fake", 300)
	customer, output := f.customer(q, "out")
	f.begun(40, customer)
	chance := rand.New(rand.NewPCG(1, 0))
	f.weather(schedule(chance, time.Minute,
		habit{aWorker, killing, 2 * time.Second, time.Second},
		habit{aWorker, freezing, 5 * time.Second, 3 * time.Second},
		habit{aWorker, cutting, 3 * time.Second, 4 * time.Second},
		habit{aHub, killing, 6 * time.Second, 4 * time.Second},
	), customer.over)
	if code := f.finishes(customer); code != 0 {
		t.Fatalf("exit %d", code)
	}
	one, _ := f.reference(q, "out")
	got, err := normalFile(output)
	if err != nil {
		t.Fatal(err)
	}
	want, err := normalFile(one)
	if err != nil {
		t.Fatal(err)
	}
	f.audit.late = f.late.allowance()
	v := f.audit.judge(settled(t, f.judge))
	t.Logf("%d calls, %d repeated, of %d in flight at %d blows; %v", v.calls, v.repeated, v.hands, len(f.audit.blows), f.strikes)
	return v, differences(got, want)
}
