package keeping

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
)

// Nothing is given under a limit of which nobody has said what it is like: it would be taken for one without bounds. What
// a worker says of it reaches the keeper while its scheduler is busy, and so does a person's word.
func TestNothingIsGivenUnderAnUnknownLimit(t *testing.T) {
	n := newConfig(t)
	k, end := keeps(t, n)
	defer end()
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan struct{})
	go func() {
		k.hearLimits(ctx) // no scheduler is there
		close(heard)
	}()
	defer func() { stop(); <-heard }()
	k.until(n.Clock.Now().Add(time.Hour))
	seq := uint64(0)
	ask := func() (given uint64) {
		seq++
		a := permit.Ask{Version: permit.Version, Worker: "w", Job: "j", Limit: "new", Seq: seq, Wants: []permit.Cost{{Requests: 1}}}
		k.tell(t.Context(), func(now time.Time, k *Keeper) { k.hear(now, a) })
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
			k.tell(t.Context(), func(_ time.Time, k *Keeper) { is <- k.limits["new"].Limits.RPM })
			got = <-is
		}
	}
	status := map[string]any{"limits": map[string]machine.LaneConfig{"new": {Limits: batch.Limits{RPM: 600}}}}
	for known := false; !known; { // what is said before it listens is lost
		must.Do(t, n.Bus.Say(bus.Status, "w", status))
		is := make(chan bool, 1)
		k.tell(t.Context(), func(_ time.Time, k *Keeper) { _, now := k.limits["new"]; is <- now })
		known = <-is
	}
	rpm(600)
	for ask() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nothing is given under a limit that is known")
		}
	}
	must.Do(t, SetLimit(t.Context(), n.Bus, n.Home, "new", machine.LaneConfig{Limits: batch.Limits{RPM: 60}}))
	rpm(60)
}

// A person's word that vouches for a limit reaches the keeper without a scheduler.
func TestAResetReachesTheKeeper(t *testing.T) {
	n := newConfig(t)
	k := newKeeper(n, 8, 1, snapshot{
		Limits: map[string]machine.LaneConfig{"l": {Limits: batch.Limits{RPM: 100}}},
		Stops:  map[string]*permit.Cause{"l": {Kind: "quota_exhausted", Text: "paid up"}},
	})
	k.orders = make(chan order, 1)
	now := n.Clock.Now()
	k.hear(now, permit.Ask{Version: permit.Version, Worker: "w", Job: "j", Limit: "l", Seq: 1, Wants: []permit.Cost{{Requests: 1}}})
	isStopped := func() bool {
		k.keeper.Ready(now)
		all := k.keeper.Status(now).Limits
		return len(all) == 1 && all[0].Stopped != nil
	}
	if !isStopped() {
		t.Fatal("the limit of the keeper before is not stopped")
	}
	k.hearNews(t.Context(), bus.Message[bus.Change]{About: "-limits", Body: bus.Change{Reset: "l"}})
	(<-k.orders)(now, k)
	if isStopped() {
		t.Error("it is stopped still")
	}
}

// What a person says of a limit reaches the keeper by the word on the bus, and not only when the store is read again.
func TestASetLimitReachesTheKeeper(t *testing.T) {
	n := newConfig(t)
	k := newKeeper(n, 8, 1, snapshot{Limits: map[string]machine.LaneConfig{"l": {Limits: batch.Limits{RPM: 100}}}})
	k.orders = make(chan order, 1)
	said := must.Get(bus.Listen[bus.Change](n.Bus, bus.News, "", 1))(t)
	defer said.Close()
	must.Do(t, SetLimit(t.Context(), n.Bus, n.Home, "l", machine.LaneConfig{Limits: batch.Limits{RPM: 7}}))
	select {
	case message := <-said.C:
		k.hearNews(t.Context(), message)
	case <-time.After(time.Minute):
		t.Fatal("nothing is said on the bus")
	}
	if len(k.orders) != 1 {
		t.Fatal("the keeper is not told")
	}
	now := n.Clock.Now()
	k.hear(now, permit.Ask{Version: permit.Version, Worker: "w", Job: "j", Limit: "l", Seq: 1, Wants: []permit.Cost{{Requests: 1}}})
	k.keeper.Ready(now)
	law := func(want float64) {
		t.Helper()
		if got := k.keeper.Status(now).Limits[0].Lane.View.Limits[0].Refill; math.Abs(got-want/60) > 1e-9 {
			t.Errorf("the law admits %v requests a minute, want %v", got*60, want)
		}
	}
	law(100)
	(<-k.orders)(now, k)
	law(7)
	if got := k.limits["l"].Limits.RPM; got != 7 {
		t.Errorf("the next keeper begins with %v requests a minute, want 7", got)
	}
}

// What a person says of a limit without a keeper is kept: of several words the last counts, and a worker's does not.
func TestASetLimitIsKept(t *testing.T) {
	n := newConfig(t)
	set := func(limit string, rpm float64) {
		t.Helper()
		must.Do(t, SetLimit(t.Context(), n.Bus, n.Home, limit, machine.LaneConfig{Limits: batch.Limits{RPM: rpm}}))
	}
	set("openai/gpt@h:1#3f9a1c", 60)
	set("other", 7)
	set("openai/gpt@h:1#3f9a1c", 30)
	kept := 0
	for _, err := range n.Home.List(t.Context(), setPrefix, "") {
		if kept++; err != nil {
			t.Fatal(err)
		}
	}
	if kept != 2 {
		t.Errorf("%d objects are kept, want one for each limit", kept)
	}
	k, end := keeps(t, n)
	defer end()
	known := must.Get(k.readSetLimits(t.Context(), 0))(t)
	k.tell(t.Context(), limitOrder("other", machine.LaneConfig{Limits: batch.Limits{RPM: 9}}))
	rpm := func(limit string, want float64) {
		t.Helper()
		is := make(chan float64, 1)
		k.tell(t.Context(), func(_ time.Time, k *Keeper) { is <- k.limits[limit].Limits.RPM })
		if got := <-is; got != want {
			t.Errorf("%s: %v requests a minute, want %v", limit, got, want)
		}
	}
	rpm("openai/gpt@h:1#3f9a1c", 30)
	rpm("other", 7)
	set("other", 8) // its word on the bus is heard by nobody
	must.Get(k.readSetLimits(t.Context(), known))(t)
	rpm("other", 8)
}

// A keeper that begins knows what people have set before it hears any worker.
func TestAKeeperBeginsWithWhatIsSet(t *testing.T) {
	n := newConfig(t)
	must.Do(t, SetLimit(t.Context(), n.Bus, n.Home, "new", machine.LaneConfig{Limits: batch.Limits{RPM: 60}}))
	k, end := keeps(t, n)
	defer end()
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan struct{})
	go func() { k.hearLimits(ctx); close(heard) }()
	defer func() { stop(); <-heard }()
	for got := 0.0; got != 60; {
		is := make(chan float64, 1)
		k.tell(t.Context(), func(_ time.Time, k *Keeper) { is <- k.limits["new"].Limits.RPM })
		got = <-is
		if t.Context().Err() != nil {
			t.Fatal("it is not known")
		}
	}
}
