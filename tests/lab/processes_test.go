package lab

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Each process has its own part of the items, draws what those draw, and hears of its own
// calls alone.
func TestProcesses(t *testing.T) {
	var batches []Batch
	laws := []*allAtOnce{}
	law := Processes(3, func(b Batch, _ uint64) Law {
		batches = append(batches, b)
		laws = append(laws, &allAtOnce{items: b.Items, left: b.Items})
		return laws[len(laws)-1]
	})(Batch{Items: 11, Tokens: func(item int) float64 { return float64(item) }, Thought: func(item int) float64 { return float64(-item) }}, 1)
	if n := fmt.Sprint(batches[0].Items, batches[1].Items, batches[2].Items); n != "3 3 5" {
		t.Fatalf("the parts have %s items", n)
	}
	if b := batches[1]; b.tokens(2) != 5 || b.cost(2).Input != -5 {
		t.Errorf("item 2 of the second part draws %v, and is thought to draw %v", b.tokens(2), b.cost(2).Input)
	}
	calls, wake := law.Ready(start)
	if len(calls) != 11 || !wake.Equal(start.Add(3*time.Second)) {
		t.Errorf("%d calls, alarm at %v", len(calls), wake)
	}
	for i, c := range calls {
		if c.Item != i || law.Over() {
			t.Fatalf("call %d is of item %d; over is %v", i, c.Item, law.Over())
		}
		law.Ended(start, c, sim.Verdict{})
	}
	if fmt.Sprint(laws[0].ended, laws[1].ended, laws[2].ended) != "[0 1 2] [0 1 2] [0 1 2 3 4]" || !law.Over() {
		t.Errorf("%v %v %v heard, over is %v", laws[0].ended, laws[1].ended, laws[2].ended, law.Over())
	}
}

// allAtOnce lets all its items go, and has an alarm after as many seconds.
type allAtOnce struct {
	items, left int
	ended       []int
}

func (a *allAtOnce) Over() bool { return a.left == 0 }

func (a *allAtOnce) Ready(now time.Time) (calls []Call, wakeAt time.Time) {
	for i := range a.items {
		calls = append(calls, Call{Item: i})
	}
	return calls, now.Add(time.Duration(a.items) * time.Second)
}

func (a *allAtOnce) Ended(_ time.Time, c Call, _ sim.Verdict) bool {
	a.left--
	a.ended = append(a.ended, c.Item)
	return true
}
