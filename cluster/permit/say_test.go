package permit

import (
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// The law asks to be asked when the first permit expires, so that its charge comes back.
func TestExpiryIsSaidInTime(t *testing.T) {
	r := newRig(t, 10)
	r.at(0).give(1, 0, 1, 5)
	r.waiting = nil
	r.at(10 * time.Second)
	for _, a := range r.said {
		for _, x := range a.Reports {
			if x.Number == 1 && x.Unused {
				return
			}
		}
	}
	t.Error("nothing was said of a permit that had expired")
}

// Reports are said until they are known to have been heard, each once in an ask, and with its
// number, so that they can be told from what was heard before.
func TestReportsAreSaidUntilHeard(t *testing.T) {
	r := newRig(t, 10, 10, 10)
	r.at(0).give(1, 0, 1, 10, 10, 10)
	k := r.mustLeave()
	r.at(AskAgain)
	r.at(2 * AskAgain)
	a := r.last()
	if a.First != 1 || len(a.Reports) != 1 || a.Reports[0].Age != 2*AskAgain {
		t.Fatalf("first %d, %+v", a.First, a.Reports)
	}
	r.Ended(r.now, k, machine.Outcome{Signal: machine.Succeeded}) // after it was said that it left
	k = r.mustLeave()
	r.Ended(r.now, k, machine.Outcome{Signal: machine.Succeeded}) // before
	r.at(2*AskAgain + AskEvery)
	a = r.last()
	if a.First != 1 || len(a.Reports) != 3 || a.Reports[1].Ended == nil || a.Reports[1].Number != 1 || a.Reports[2].Ended == nil || a.Reports[2].Number != 2 {
		t.Fatalf("first %d, %+v", a.First, a.Reports)
	}
	r.Hear(r.now, &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Heard: a.Seq - 1})
	r.at(3*AskAgain + AskEvery)
	if a = r.last(); a.First != 2 || len(a.Reports) != 2 {
		t.Errorf("an earlier ask was heard, and now it is first %d, %+v", a.First, a.Reports)
	}
	r.give(1, 0, 3)
	if r.reports.list != nil {
		t.Errorf("all was heard, and it still has %+v", r.reports.list)
	}
}

// A flood of reports is said in pieces.
func TestReportsAreBounded(t *testing.T) {
	r := newRig(t)
	r.say()
	for i := range 3 * MaxReports {
		r.reports.add(Report{Epoch: 1, Number: Number(i + 1), Unused: true}, noon)
	}
	for i := range 3 {
		r.at(time.Duration(i+1) * AskEvery)
		a := r.last()
		if len(a.Reports) != MaxReports || a.First != uint64(i*MaxReports)+1 {
			t.Fatalf("%d reports from %d on", len(a.Reports), a.First)
		}
		r.give(1, 0, 1)
	}
	if len(r.reports.list) > 0 {
		t.Errorf("%d are left", len(r.reports.list))
	}
}

// A report whose call ended says so by itself if its leaving was in no ask yet, also when it
// was in the list's tail that did not fit.
func TestReportsThatDidNotFitAreReplaced(t *testing.T) {
	var x reports
	x.first = 1
	for i := range MaxReports + 1 {
		x.add(Report{Epoch: 1, Number: Number(i + 1)}, noon)
	}
	x.unheard(noon)
	if x.replace(1, Report{Number: 1, Unused: true}) {
		t.Error("what was said is changed")
	}
	if !x.replace(MaxReports+1, Report{Number: MaxReports + 1, Unused: true}) || !x.list[MaxReports].Unused {
		t.Error("what was not said is not changed")
	}
}

// What waits is wanted as far as there are places, and permits in hand count.
func TestWants(t *testing.T) {
	r := newRig(t, 30, 10, 20, 10, 10)
	r.free = 4
	r.at(0)
	if got := r.last().Wants; len(got) != 4 || got[0].Input != 30 || got[1].Input != 10 {
		t.Errorf("it wants %v", got)
	}
	r.give(1, 0, 1, 10, 20, 20)
	r.at(AskAgain) // 30 is not covered; 10, 20 and 10 are
	if got := r.last().Wants; len(got) != 1 || got[0].Input != 30 {
		t.Errorf("with 10, 20 and 20 in hand it wants %v", got)
	}
}

// As many are described as may come before the next ask; the rest is counted, less what is in
// hand for it.
func TestMoreWants(t *testing.T) {
	r := newRig(t, make([]float64, MaxWants)...)
	for i := range r.waiting {
		r.waiting[i] = 10
	}
	up := limiter.Upcoming{Waiting: 1000, Free: 100, Costs: costs(r.waiting...)}
	check := func(why string, described, more int) {
		t.Helper()
		if wants, beside := r.wants(up); len(wants) != described || beside != more {
			t.Errorf("%s: %d wants and %d more", why, len(wants), beside)
		}
	}
	check("at first", 2*firstFlow, 100-2*firstFlow)
	r.asks.flow = 0
	check("nothing comes", leastWants, 100-leastWants)
	r.asks.flow = 1000
	check("much comes", MaxWants, 100-MaxWants)
	for i := range 80 {
		r.hand.add(inHand{Permit: Permit{Number: Number(i + 1), Cost: Cost{Input: 10}}, until: noon.Add(Life)})
	}
	check("80 are in hand, of which 16 beyond what is looked at", 0, 20)
	r.hand.permits = r.hand.permits[:10]
	check("10 are in hand", MaxWants-10, 100-MaxWants)
	r.stopped = true
	check("stopped", 0, 0)
}

// How much is described follows what comes.
func TestWhatIsDescribedFollowsWhatComes(t *testing.T) {
	r := newRig(t, make([]float64, 64)...)
	r.at(0)
	many := make([]float64, 20)
	r.give(1, 0, 1, many...)
	for range many {
		r.mustLeave()
	}
	if r.at(AskAgain); len(r.last().Wants) >= 2*firstFlow {
		t.Errorf("before it is known that 20 come it describes %d", len(r.last().Wants))
	}
	if r.at(2 * AskAgain); len(r.last().Wants) != 40 {
		t.Errorf("20 have come, and it describes %d", len(r.last().Wants))
	}
	if r.at(10 * time.Second); len(r.last().Wants) != leastWants || r.last().More != 40 {
		t.Errorf("nothing has come for long, and it describes %d and counts %d more", len(r.last().Wants), r.last().More)
	}
}

// Places count that will be free when the permits come: without them a worker whose calls are
// short stands idle for as long as permits take.
func TestPlacesThatWillBeFree(t *testing.T) {
	r := newRig(t, 10, 10, 10, 10, 10, 10, 10, 10)
	r.free = 4
	r.at(0).give(1, 0, 1, 10, 10, 10, 10)
	var in []limiter.Ticket
	for range 4 {
		in = append(in, r.mustLeave())
	}
	r.free = 0
	if r.at(AskAgain); len(r.last().Wants) != 0 {
		t.Errorf("nothing is known of how long calls take, and it wants %v", r.last().Wants)
	}
	r.now = r.now.Add(time.Millisecond)
	r.Ended(r.now, in[0], machine.Outcome{Signal: machine.Succeeded})
	r.latency, r.free = 0.050, 1
	if r.at(2 * AskAgain); len(r.last().Wants) != 4 {
		t.Errorf("calls of 50 ms will have ended, and it wants %v", r.last().Wants)
	}
	r.latency = 4
	if r.at(3 * AskAgain); len(r.last().Wants) != 2 {
		t.Errorf("of three calls of 4 s one at most ends soon, and it wants %v", r.last().Wants)
	}
}

// When what is said.
func TestWhenItAsks(t *testing.T) {
	r := newRig(t)
	if r.at(time.Second); len(r.said) != 0 {
		t.Fatal("it has nothing to say, and says it")
	}
	r.waiting = []float64{10, 10}
	if r.at(1001 * time.Millisecond); len(r.said) != 1 {
		t.Fatal("a call waits, and it does not ask at once")
	}
	r.waiting = []float64{10, 10, 10}
	if r.at(1050 * time.Millisecond); len(r.said) != 1 {
		t.Fatal("the keeper knows that it wants, and it asks again before its time")
	}
	r.at(2001 * time.Millisecond)
	if n := len(r.said); n != 5 {
		t.Errorf("in a second in which it wants permits it asks %d times", n-1)
	}
	r.give(1, 0, 1, 10, 10, 10)
	in := []limiter.Ticket{r.mustLeave(), r.mustLeave(), r.mustLeave()}
	r.at(2300 * time.Millisecond)
	r.give(1, 0, 4)
	n := len(r.said)
	r.at(12300 * time.Millisecond) // calls are in flight, and that is known
	if got := len(r.said) - n; got < 9 || got > 11 {
		t.Errorf("in ten seconds with calls in flight it asks %d times", got)
	}
	r.waiting = []float64{10}
	n = len(r.said)
	r.at(12300*time.Millisecond + AskSoonest)
	if len(r.said) != n+1 {
		t.Error("a call waits of which the keeper does not know, and it does not ask at once")
	}
	r.Ended(r.now, in[0], machine.Outcome{Signal: machine.Succeeded})
	n = len(r.said)
	r.at(12300*time.Millisecond + AskEvery - 1)
	if len(r.said) != n {
		t.Error("a call has ended, and it says so before other news can come")
	}
	r.at(12300*time.Millisecond + AskEvery)
	if len(r.said) != n+1 {
		t.Error("a call has ended, and it does not say so in time")
	}
}

// A lane whose worker has no place free asks for one call: other lanes that hold the places ask again as their calls end, and
// would keep them for ever. It does not if no call is likely to end while a permit lives; then it looks again.
func TestALaneWithoutAPlaceAsksForOne(t *testing.T) {
	for _, c := range []struct {
		name    string
		latency float64 // seconds
		busy    int
		want    int
	}{
		{"an unknown latency", 0, 4, 1},
		{"a short latency", 0.1, 4, 1},
		{"a long latency, many calls", 60, 64, 1},
		{"a long latency, few calls", 60, 4, 0},
	} {
		r := newRig(t, 10, 10, 10)
		r.free, r.busy, r.latency = 0, c.busy, c.latency
		r.at(AskSoonest)
		got := 0
		if len(r.said) > 0 {
			got = len(r.last().Wants) + r.last().More
		}
		if got != c.want {
			t.Errorf("%s: %d calls are wanted, want %d", c.name, got, c.want)
		}
		if r.free = 1; r.next.IsZero() {
			t.Errorf("%s: it does not want to be asked again", c.name)
		}
		if r.at(AskSoonest + AskAgain); len(r.said) == 0 || len(r.last().Wants) != 1 {
			t.Errorf("%s: a place is free, and it asks for nothing", c.name)
		}
	}
}
