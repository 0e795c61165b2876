package claim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A config is completed, and refused where it makes no sense.
func TestConfig(t *testing.T) {
	m, err := New(Config{Who: "w", Concurrency: 2500})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Who: "w", Concurrency: 2500, AckWait: 30 * time.Second, AskTime: 300 * time.Millisecond, Grace: 3 * time.Second}
	if got := m.Config(); got != want {
		t.Errorf("%+v", got)
	}
	if got := m.Config().AtHand(); got != 4 {
		t.Errorf("%d chunks at hand", got)
	}
	for _, c := range []Config{{}, {Who: "a/b"}, {Who: "a.b"}, {Who: "w", AckWait: -1}, {Who: "w", AskTime: -1}, {Who: "w", Grace: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// For any events in any order, a machine neither breaks nor asks to be woken in the past. It also orders
// nothing for a claim that is over.
func TestNonsense(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		m, err := New(Config{Who: "me", Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		now, over := time.Unix(1_000_000, 0), map[ID]bool{}
		delivery := ID(0)
		for range 400 {
			now = now.Add(time.Duration(rng.Int64N(int64(2 * time.Second))))
			e := nonsense(rng, &delivery)
			m.Step(now, e)
			r := m.Ready(now)
			for _, a := range r.Do {
				if id, is := claimOf(a); is && over[id] {
					t.Fatalf("seed %d: %T%+v of a claim that is over, after %T%+v", seed, a, a, e, e)
				}
				if f, is := a.(Forget); is {
					over[f.ID] = true
				}
			}
			if !r.WakeAt.IsZero() && r.WakeAt.Before(now) {
				t.Fatalf("seed %d: to be woken %v ago, after %T%+v", seed, now.Sub(r.WakeAt), e, e)
			}
			if again := m.Ready(now); len(again.Do) > 0 {
				t.Fatalf("seed %d: asked twice, it does more: %v", seed, again.Do)
			}
		}
	}
}

// claimOf is the claim that an action is for. Refuse is for items that outlive theirs.
func claimOf(a Action) (ID, bool) {
	switch a := a.(type) {
	case Beat:
		return a.ID, true
	case Ack:
		return a.ID, true
	case LookPart:
		return a.ID, true
	case List:
		return a.ID, true
	case Create:
		return a.ID, true
	case Remove:
		return a.ID, true
	case ReadJournals:
		return a.ID, true
	case Flush:
		return a.ID, true
	case Close:
		return a.ID, true
	case Join:
		return a.ID, true
	case Clean:
		return a.ID, true
	case Ask:
		return a.ID, true
	case Tell:
		return a.ID, true
	case Go:
		return a.ID, true
	}
	return 0, false
}

// nonsense draws a fact about one of the latest claims.
func nonsense(rng *rand.Rand, delivery *ID) Event {
	id := *delivery - min(*delivery, ID(rng.IntN(3)))
	chunk := Chunk{"j", rng.IntN(3), 0}
	name := Name{1 + rng.IntN(3), []string{"me", "you", "him"}[rng.IntN(3)], ID(rng.IntN(3))}
	var err error
	if rng.IntN(6) == 0 {
		err = errors.New("it is away")
	}
	item := rng.IntN(3)
	switch rng.IntN(26) {
	case 0, 1:
		*delivery++
		return Delivered{*delivery, chunk}
	case 2:
		return FetchEnded{"j", err}
	case 3, 4:
		return BeatEnded{id, err, err != nil && rng.IntN(2) == 0}
	case 5:
		return Acked{id, err}
	case 6, 7:
		return PartLooked{id, rng.IntN(8) == 0, err}
	case 8, 9, 10:
		return Listed{id, []Name{name, {1, "me", id}}[rng.IntN(2):], err}
	case 11, 12:
		return Created{id, rng.IntN(8) == 0, err}
	case 13, 14:
		return JournalsRead{id, rng.IntN(8) == 0, err}
	case 15:
		return Saved{id, 1 + rng.IntN(2)}
	case 16:
		return Closed{id}
	case 17:
		return Joined{id, Outcome(rng.IntN(3)), err}
	case 18:
		return Cleaned{id}
	case 19:
		return Answered{id, name.Who, rng.IntN(4) == 0, rng.IntN(2) == 0}
	case 20:
		return Begun{id, item}
	case 21:
		return Took{id, item}
	case 22:
		return Missed{id, item}
	case 23:
		return rare(rng, id, chunk, name)
	}
	return Fed{id, item}
}

// rare draws a fact of those that end everything.
func rare(rng *rand.Rand, id ID, chunk Chunk, name Name) Event {
	return []Event{
		Told{chunk, name},
		Connected{time.Unix(1_000_000, 0)},
		Canceled{"j"},
		Resumed{"j"},
		Resumed{"j"},
		Offered{[]string{"j", "k"}[:rng.IntN(3)]},
		ReadOut{ID: id},
		JournalBroke{id, errors.New("full")},
		Unrun{id, 0},
		ReadOut{ID: id},
	}[rng.IntN(10)]
}

// What is drained stays so, and does nothing more once all is over.
func TestDrainedForGood(t *testing.T) {
	m, err := New(Config{Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	m.Step(now, Drained{})
	if r := m.Ready(now); len(r.Do) > 0 || !r.WakeAt.IsZero() || !m.Idle() {
		t.Errorf("%+v, idle %v", r, m.Idle())
	}
}

// atWork brings a claim of a chunk that nobody has claimed before to work.
func atWork(t *testing.T, m *Machine, now time.Time, id ID, chunk Chunk) {
	t.Helper()
	name := Name{1, m.Config().Who, id}
	for _, e := range []Event{
		Delivered{id, chunk},
		PartLooked{ID: id},
		Listed{ID: id},
		Created{ID: id},
		Listed{ID: id, Names: []Name{name}},
		PartLooked{ID: id},
		JournalsRead{ID: id},
	} {
		m.Step(now, e)
		m.Ready(now)
	}
	if c := m.claim(id); c == nil || c.state.String() != "working" {
		t.Fatalf("it does not work: %+v", c)
	}
}

// Of one job's chunks the one that came first is read to its end first, so that chunks end one by one.
func TestOldestFirst(t *testing.T) {
	m, err := New(Config{Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	atWork(t, m, now, 1, Chunk{"j", 8, 0})
	atWork(t, m, now, 2, Chunk{"j", 7, 0})
	for item := range 3 {
		if id, ok := m.Next(func(ID) bool { return true }); id != 1 || !ok {
			t.Fatalf("item %d is of %d, %v", item, id, ok)
		}
		m.Step(now, Fed{1, item})
	}
	m.Step(now, ReadOut{ID: 1})
	if id, ok := m.Next(func(ID) bool { return true }); id != 2 || !ok {
		t.Fatalf("then %d, %v", id, ok)
	}
}

// Where the stream's room is not told, no job waits for another; they take turns.
func TestNoShare(t *testing.T) {
	m, err := New(Config{Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	atWork(t, m, now, 1, Chunk{"j", 7, 0})
	atWork(t, m, now, 2, Chunk{"k", 7, 0})
	for item, want := range []ID{1, 2, 1, 2, 1} {
		id, ok := m.Next(func(ID) bool { return true })
		if id != want || !ok {
			t.Fatalf("item %d is of %d, %v", item, id, ok)
		}
		m.Step(now, Fed{id, item})
	}
}

// A worker works on so many jobs at once and no more. Of the others each has its turn, also where those that are asked have
// nothing.
func TestJobsAtHand(t *testing.T) {
	m, err := New(Config{Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	var jobs []string
	for n := range 2 * JobsAtHand {
		jobs = append(jobs, fmt.Sprint("j", n))
	}
	m.Step(now, Offered{jobs})
	asked, under := map[string]bool{}, m.Ready(now).Do
	for range 4 {
		if len(under) != JobsAtHand {
			t.Fatalf("%d are asked at once", len(under))
		}
		for _, a := range under {
			asked[a.(Fetch).Job] = true
			m.Step(now, FetchEnded{Job: a.(Fetch).Job})
		}
		under = m.Ready(now).Do
	}
	if len(asked) != len(jobs) {
		t.Errorf("%d of %d jobs were asked", len(asked), len(jobs))
	}
	for n, a := range under {
		m.Step(now, Delivered{ID(n + 1), Chunk{a.(Fetch).Job, 0, 0}})
	}
	for _, a := range m.Ready(now).Do {
		if f, is := a.(Fetch); is && m.held()[f.Job] == 0 {
			t.Errorf("%s is fetched beside %d jobs at hand", f.Job, len(m.held()))
		}
	}
}

// A claim that has nothing read keeps no other job waiting, and its own later ones only.
func TestUnreadWaitsAlone(t *testing.T) {
	m, err := New(Config{Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	atWork(t, m, now, 1, Chunk{"j", 7, 0})
	atWork(t, m, now, 2, Chunk{"j", 8, 0})
	atWork(t, m, now, 3, Chunk{"k", 7, 0})
	if id, ok := m.Next(func(id ID) bool { return id != 1 }); id != 3 || !ok {
		t.Errorf("next is %d, %v", id, ok)
	}
}
