package node

import (
	"context"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

// Nothing is given under a limit of which nobody has said what it is like: it would be taken for one without bounds. What
// a worker says of it reaches the keeper while its foreman is busy, and so does a person's word.
func TestNothingIsGivenUnderAnUnknownLimit(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	k, end := keeps(t, n)
	defer end()
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan struct{})
	go func() {
		n.hearLimits(ctx, k) // no foreman is there
		close(heard)
	}()
	defer func() { stop(); <-heard }()
	k.until(n.clock.Now().Add(time.Hour))
	seq := uint64(0)
	ask := func() (given uint64) {
		seq++
		a := permit.Ask{Version: permit.Version, Worker: "w", Job: "j", Limit: "new", Seq: seq, Wants: []permit.Cost{{Requests: 1}}}
		k.tell(t.Context(), func(now time.Time, k *keeping) { k.hear(now, a) })
		return k.status(t, "new").Counts.Given
	}
	for range 20 {
		if n := ask(); n != 0 {
			t.Fatalf("%d permits were given", n)
		}
	}
	rpm := func(want float64) {
		t.Helper()
		for got := 0.0; got != want; {
			is := make(chan float64, 1)
			k.tell(t.Context(), func(_ time.Time, k *keeping) { is <- k.limits["new"].Limits.RPM })
			got = <-is
		}
	}
	status := WorkerStatus{Limits: map[string]machine.LaneConfig{"new": {Limits: batch.Limits{RPM: 600}}}}
	said := func(topic bus.Topic, word any) {
		t.Helper()
		if err := n.bus.Say(topic, "w", word); err != nil {
			t.Fatal(err)
		}
	}
	for known := false; !known; { // what is said before it listens is lost
		said(bus.Status, status)
		is := make(chan bool, 1)
		k.tell(t.Context(), func(_ time.Time, k *keeping) { _, now := k.limits["new"]; is <- now })
		known = <-is
	}
	rpm(600)
	for ask() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nothing is given under a limit that is known")
		}
	}
	said(bus.News, newsWord{Set: &limitSet{Name: "new", Lane: machine.LaneConfig{Limits: batch.Limits{RPM: 60}}}})
	rpm(60)
}

// A person's word that vouches for a limit reaches the keeper without a foreman.
func TestAResetReachesTheKeeper(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	k := newKeeping(n, 8, 1, snapshot{
		Limits: map[string]machine.LaneConfig{"l": {Limits: batch.Limits{RPM: 100}}},
		Stops:  map[string]*permit.Cause{"l": {Kind: "quota_exhausted", Text: "paid up"}},
	})
	k.orders = make(chan order, 1)
	now := n.clock.Now()
	k.hear(now, permit.Ask{Version: permit.Version, Worker: "w", Job: "j", Limit: "l", Seq: 1, Wants: []permit.Cost{{Requests: 1}}})
	isStopped := func() bool {
		k.keeper.Ready(now)
		all := k.keeper.Status(now).Limits
		return len(all) == 1 && all[0].Stopped != nil
	}
	if !isStopped() {
		t.Fatal("the limit of the keeper before is not stopped")
	}
	k.hearNews(t.Context(), bus.Word{About: "-limits", Body: []byte(`{"reset":"l"}`)})
	(<-k.orders)(now, k)
	if isStopped() {
		t.Error("it is stopped still")
	}
}
