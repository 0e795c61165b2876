package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/internal/must"
)

// Asks go to the keeper, gives to one worker, and cools to all workers. No message is lost on the way.
func TestPermitWords(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	keeper, one, two := connect(t, hub.JoinURL(), "k"), connect(t, hub.JoinURL(), "w.1"), connect(t, hub.JoinURL(), "w 2")
	asks, err := keeper.Asks(10)
	if err != nil {
		t.Fatal(err)
	}
	gives := make([]*Feed[permit.Give], 2)
	cools := make([]*Feed[permit.Cool], 2)
	for i, b := range []*Bus{one, two} {
		if gives[i], err = b.Gives(b.Name(), 10); err != nil {
			t.Fatal(err)
		}
		if cools[i], err = b.Cools(10); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, keeper, one, two)
	ask := permit.Ask{
		Version: permit.Version, Worker: "w.1", Job: "j", Limit: "org main", Seq: 3, Wants: []permit.Cost{{Requests: 1, Input: 2.5}},
		Reports: []permit.Report{{Number: 7, Ended: &permit.Outcome{Cause: &permit.Cause{Text: "gone"}}, Age: time.Second}},
	}
	must.Do(t, one.SendAsk(ask))
	same(t, take(t, asks), ask)
	give := permit.Give{Version: permit.Version, Worker: "w 2", Limit: "org main", Epoch: 9, Permits: []permit.Permit{{Number: 1, Probe: true}}}
	cool := permit.Cool{Limit: "org main", Epoch: 9, For: time.Minute}
	must.Do(t, errors.Join(keeper.SendGive(give), keeper.SendCool(cool)))
	same(t, take(t, gives[1]), give)
	for _, f := range cools {
		same(t, take(t, f), cool)
	}
	if n := len(gives[0].C); n != 0 {
		t.Errorf("%d gives came to the wrong worker", n)
	}
}

// same compares what is sent, which is JSON.
func same[T any](t *testing.T, got, want T) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		t.Errorf("got %s, want %s", g, w)
	}
}

// settled waits until the server has heard of all subscriptions.
func settled(t testing.TB, buses ...*Bus) {
	t.Helper()
	for _, b := range buses {
		must.Do(t, b.Reached(t.Context()))
	}
}

// A state of a later version is heard, without the fields that have another type. A message that obliges its
// reader to act is not.
func TestStatesOfALaterVersionAreHeard(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	states, err1 := Listen[Picture](b, Keeper, "", 2)
	status, err2 := Listen[WorkerStatus](b, Status, "", 2)
	parts, err3 := Listen[PartDone](b, Done, "", 2)
	must.Do(t, errors.Join(err1, err2, err3))
	settled(t, b)
	err1 = b.Say(Keeper, "k", json.RawMessage(`{"v":99,"limits":"of another form","epoch":7}`))
	err2 = b.Say(Status, "w1", json.RawMessage(`{"limits":[1],"in_flight":3}`))
	err3 = b.Say(Done, "job", json.RawMessage(`{"n":"seven"}`))
	must.Do(t, errors.Join(err1, err2, err3))
	if m := take(t, states); m.Body.Version != 99 || m.Body.Epoch != 7 {
		t.Errorf("the keeper's state is %+v", m.Body)
	}
	if m := take(t, status); m.Body.InFlight != 3 {
		t.Errorf("the worker's status is %+v", m.Body)
	}
	eventually(t, "the part is not understood", func() bool { return parts.Unreadable() == 1 })
}

// Who reads too slowly loses the oldest, and it is counted; what cannot be read is counted, too.
func TestFeedDropsTheOldest(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	feed := must.Get(Listen[json.RawMessage](b, Status, "", 3))(t)
	last := must.Get(Listen[json.RawMessage](b, Status, "end", 1))(t)
	asks := must.Get(b.Asks(1))(t)
	settled(t, b)
	must.Do(t, b.nc.Publish(subject(b.space, askKind, "l", "w"), []byte("{")))
	for n := range 10 {
		must.Do(t, b.Say(Status, "w1", n))
	}
	must.Do(t, b.Say(Status, "end", 10))
	take(t, last)
	eventually(t, "all have come", func() bool { return feed.Dropped() == 8 })
	var got []string
	for range 3 {
		w := take(t, feed)
		got = append(got, fmt.Sprint(w.About, string(w.Body)))
	}
	if want := []string{"w18", "w19", "end10"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	eventually(t, "the foreign one is counted", func() bool { return asks.Unreadable() == 1 })
	feed.Close()
	if _, ok := <-feed.C; ok {
		t.Error("a feed that was closed goes on")
	}
}

// Feeds end with their connection.
func TestFeedEnds(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	feed := must.Get(b.ListenTaken("w1", 1))(t)
	b.Close()
	if _, ok := <-feed.C; ok {
		t.Error("it goes on")
	}
	feed.Close()
	if err := b.Say(News, "j", nil); !errors.Is(err, ErrAway) {
		t.Errorf("saying something after Close: %v", err)
	}
}

// Words about one job are heard by who listens for it and by who listens for all.
func TestTopics(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	all, err1 := Listen[json.RawMessage](b, Done, "", 10)
	mine, err2 := Listen[json.RawMessage](b, Done, "my.job", 10)
	news, err3 := Listen[json.RawMessage](b, News, "", 10)
	must.Do(t, errors.Join(err1, err2, err3))
	settled(t, b)
	must.Do(t, errors.Join(b.Say(Done, "other", 1), b.Say(Done, "my.job", 2), b.Say(News, "my.job", 3)))
	for _, want := range []string{"other1", "my.job2"} {
		if w := take(t, all); w.About+string(w.Body) != want {
			t.Errorf("got %v, want %s", w, want)
		}
	}
	if w := take(t, mine); string(w.Body) != "2" {
		t.Errorf("got %v", w)
	}
	if w := take(t, news); string(w.Body) != "3" {
		t.Errorf("got %v", w)
	}
	if err := b.Say(Done, "", 1); !errors.Is(err, ErrName) {
		t.Errorf("about nothing: %v", err)
	}
}

// The earlier claimant is asked, and answers for himself. The dead do not answer, and that is no error.
func TestHolds(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	owner, asker := connect(t, hub.JoinURL(), "owner"), connect(t, hub.JoinURL(), "asker")
	ctx := testContext(t)
	work := Work{Chunks, "a.job", "7.r1"}
	stop := must.Get(owner.Answer("owner", func(w Work) bool { return w == work }))(t)
	settled(t, owner)
	for w, want := range map[Work]bool{work: true, {Tasks, "a.job", "7.r1"}: false, chunk(7): false} {
		eventually(t, "an answer", func() bool {
			holds, answered, err := asker.Holds(ctx, "owner", w)
			if err != nil || answered && holds != want {
				t.Fatalf("%v: holds %v, %v", w, holds, err)
			}
			return answered
		})
	}
	stop()
	settled(t, owner)
	for _, who := range []string{"owner", "nobody"} {
		if holds, answered, err := asker.Holds(ctx, who, work); holds || answered || err != nil {
			t.Errorf("%s: holds %v, answered %v, %v", who, holds, answered, err)
		}
	}
	if _, _, err := asker.Holds(ctx, "", work); !errors.Is(err, ErrName) {
		t.Errorf("nobody was asked: %v", err)
	}
	asker.Close()
	if _, answered, err := asker.Holds(ctx, "owner", work); answered || !errors.Is(err, ErrAway) {
		t.Errorf("asked without a connection: %v, %v", answered, err)
	}
}

// Who answers too late has not answered.
func TestHoldsTooLate(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	owner, asker := connect(t, hub.JoinURL(), "owner"), connect(t, hub.JoinURL(), "asker")
	asked := make(chan struct{})
	stop := must.Get(owner.Answer("owner", func(Work) bool {
		<-asked
		return true
	}))(t)
	settled(t, owner)
	holds, answered, err := asker.Holds(testContext(t), "owner", chunk(1))
	close(asked)
	if holds || answered || err != nil {
		t.Errorf("holds %v, answered %v, %v", holds, answered, err)
	}
	stop()
}

// Who takes over says so to the one before.
func TestTell(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	owner, other := connect(t, hub.JoinURL(), "owner"), connect(t, hub.JoinURL(), "other")
	feed := must.Get(owner.ListenTaken("owner", 1))(t)
	settled(t, owner)
	want := Taken{Work: chunk(7), Turn: 3, By: "other"}
	must.Do(t, other.Tell("owner", want))
	if got := take(t, feed); got != want {
		t.Errorf("got %+v", got)
	}
}
