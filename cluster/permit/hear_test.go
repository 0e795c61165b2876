package permit

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

func TestWordsThatComeTwiceOrLate(t *testing.T) {
	r := newRig(t, 10, 10, 10, 10)
	r.at(0).give(5, 3, 7, 10)
	r.give(5, 3, 7, 10)
	r.mustLeave()
	r.mustNotLeave("the same give came twice")
	r.give(5, 3, 6, 10)
	r.mustNotLeave("it came after a later one: whether it was used is not known any more")
	r.give(4, 9, 50, 10)
	r.mustNotLeave("an earlier keeper gave it")
	r.Hear(r.now, &Give{Version: Version, Worker: "other", Job: "j", Limit: "l", Epoch: 5, Wave: 3, Heard: 1, Permits: []Permit{{Number: 90, Cost: Cost{Input: 10}}}})
	r.mustNotLeave("it is for another")
	r.give(5, 2, 91, 10)
	r.mustNotLeave("it is of an older wave")
	r.give(6, 0, 1, 10)
	r.mustLeave()
	r.at(AskEvery)
	if a := r.last(); a.Epoch != 6 || a.Got != 1 {
		t.Errorf("it believes in keeper %d and has %d", a.Epoch, a.Got)
	}
}

// Permits of the keeper before are good until they expire: the next one begins with nothing.
func TestPermitsOutliveTheirKeeper(t *testing.T) {
	r := newRig(t, 10, 10)
	r.at(0).give(1, 4, 1, 10, 10)
	r.give(2, 0, 1)
	r.mustLeave()
	r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 2, Wave: 1})
	r.mustNotLeave("a wave of the later keeper voids them")
}

func TestAWaveVoidsWhatIsInHand(t *testing.T) {
	r := newRig(t, 10, 10, 10)
	r.at(0).give(1, 0, 1, 10, 10)
	r.Hear(r.now, &Cool{Version: Version, Limit: "other", Epoch: 1, Wave: 1})
	r.mustLeave()
	r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1, For: time.Second})
	r.mustNotLeave("there was a wave since")
	r.at(AskEvery)
	if x := r.last().Reports; len(x) != 2 || x[0].Number != 1 || x[0].Unused || x[1].Number != 2 || !x[1].Unused {
		t.Errorf("it reports %+v", x)
	}
	r.give(1, 1, 3, 10)
	r.mustLeave()
}

// A wave is known from a give as well, if the word about it was lost.
func TestAGiveTellsOfAWave(t *testing.T) {
	r := newRig(t, 10, 10)
	r.at(0).give(1, 0, 1, 10)
	r.give(1, 1, 2)
	r.mustNotLeave("there was a wave since")
}

func TestStopAndResume(t *testing.T) {
	fault := &provider.Error{Kind: provider.QuotaExhausted, Message: "no credit"}
	stop := &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 2, Stopped: CauseOf(fault)}
	r := newRig(t, 10, 10)
	r.at(0).give(1, 1, 1, 10)
	if reply := r.Hear(r.now, stop); !errors.Is(reply.Stop, provider.QuotaExhausted) || reply.Resume {
		t.Errorf("the lane is to %+v", reply)
	}
	r.mustNotLeave("it is stopped")
	if r.at(AskEvery); len(r.last().Wants) > 0 {
		t.Errorf("it wants %v", r.last().Wants)
	}
	if reply := r.Hear(r.now, stop); reply != (limiter.Reply{}) {
		t.Errorf("told again, the lane is to %+v", reply)
	}
	if reply := r.give(1, 2, 2); reply.Resume {
		t.Error("a give of the same wave resumes it")
	}
	if reply := r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 3}); !reply.Resume || reply.Stop != nil {
		t.Errorf("vouched for, the lane is to %+v", reply)
	}
	if r.at(2 * AskEvery); len(r.last().Wants) == 0 {
		t.Error("it wants nothing any more")
	}
}

// A stop that was lost is heard when it is said again, though a give told of its wave.
func TestAStopAfterAGiveOfItsWave(t *testing.T) {
	r := newRig(t, 10)
	r.at(0).give(1, 2, 1)
	if reply := r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 2, Stopped: &Cause{Text: "no credit"}}); reply.Stop == nil {
		t.Error("it is not stopped")
	}
}

func TestAnsweredElsewhere(t *testing.T) {
	r := newRig(t, 10)
	r.at(0)
	g := &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Heard: 1}
	if r.Hear(r.now, g).Answered {
		t.Error("nobody was answered")
	}
	g.Answered = true
	if !r.Hear(r.now, g).Answered {
		t.Error("somebody was answered")
	}
}
