package claim

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/purity"
)

// A config is completed, and refused where it makes no sense.
func TestConfig(t *testing.T) {
	m := must.Get(New(Config{Who: "w", Concurrency: 2500}))(t)
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
		m := must.Get(New(Config{Who: "me", Concurrency: 1}))(t)
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
	case CheckPart:
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
		ClaimedByOther{chunk, name},
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
	m := must.Get(New(Config{Who: "me"}))(t)
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
	if c := m.claim(id); c == nil || c.state != working {
		t.Fatalf("it does not work: %+v", c)
	}
}

// Of one job's chunks the one that came first is read to its end first, so that chunks end one by one.
func TestOldestFirst(t *testing.T) {
	m := must.Get(New(Config{Who: "me"}))(t)
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
	m := must.Get(New(Config{Who: "me"}))(t)
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
	m := must.Get(New(Config{Who: "me"}))(t)
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
		if f, is := a.(Fetch); is && m.countClaims()[f.Job] == 0 {
			t.Errorf("%s is fetched beside %d jobs at hand", f.Job, len(m.countClaims()))
		}
	}
}

// A claim that has nothing read keeps no other job waiting, and its own later ones only.
func TestUnreadWaitsAlone(t *testing.T) {
	m := must.Get(New(Config{Who: "me"}))(t)
	now := time.Unix(1_000_000, 0)
	atWork(t, m, now, 1, Chunk{"j", 7, 0})
	atWork(t, m, now, 2, Chunk{"j", 8, 0})
	atWork(t, m, now, 3, Chunk{"k", 7, 0})
	if id, ok := m.Next(func(id ID) bool { return id != 1 }); id != 3 || !ok {
		t.Errorf("next is %d, %v", id, ok)
	}
}

// Names stand in the order of their claims, where they are listed as text too.
func TestNamesInOrder(t *testing.T) {
	in := []Name{{1, "a", 2}, {1, "a", 10}, {1, "b", 1}, {2, "a", 1}, {10, "a", 1}, {9999, "a", 1}}
	for i, n := range in {
		if got, ok := ParseName(n.String()); !ok || got != n {
			t.Errorf("%v is read as %v, %v", n, got, ok)
		}
		for j, o := range in {
			if got := n.Compare(o); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v beside %v: %d", n, o, got)
			}
		}
	}
	turns := []string{Name{1, "b", 1}.String(), Name{2, "a", 1}.String(), Name{10, "a", 1}.String()}
	if !slices.IsSorted(turns) {
		t.Errorf("as text they are not in order: %v", turns)
	}
}

// What no claim has written is no name.
func TestNoNames(t *testing.T) {
	for _, s := range []string{
		"", "0001", "0001-", "0001-a", "0001-.1", "0001-a.", "0001-a.x", "0000-a.1", "1-a.1", "00001-a.1", "-001-a.1", "0001-a.01",
		"0001-a.-1", "0001-a.18446744073709551616", "99999999999999999999-a.1", "x-a.1",
	} {
		if n, ok := ParseName(s); ok {
			t.Errorf("%q is taken for %v", s, n)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("0001-w-3.x.7")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := ParseName(s); ok && (n.String() != s || n.Turn < 1 || n.Who == "") {
			t.Errorf("%q is read as %#v", s, n)
		}
	})
}

// A chunk says what it is, as its part is called.
func TestChunkSays(t *testing.T) {
	if got := (Chunk{"j", 7, 0}).String() + " " + (Chunk{"j", 7, 2}).String(); got != "j/7 j/7.r2" {
		t.Error(got)
	}
}

// This is all that claims may know of the world: nothing of it can start something, wait for something, ask for the
// time, or draw lots that it was not given.
func TestPure(t *testing.T) {
	purity.Check(t, 7,
		"cmp", "errors", "fmt", "slices", "strconv", "strings", "time",
	)
}

var rewrite = flag.Bool("rewrite", false, "write what the machine answers into the stories")

// The stories in testdata hold: after each fact stands all that the machine does about it. A fact is a
// line; what follows from it is indented. With -rewrite they are written anew.
func TestStories(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d stories: %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(text))
			if *rewrite {
				err = os.WriteFile(name, []byte(got), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !*rewrite && got != string(text) {
				t.Errorf("%s is told differently:\n%s", name, got)
			}
		})
	}
}

// teller tells one story.
type teller struct {
	t     *testing.T
	m     *Machine
	start time.Time
	now   time.Time
	wake  time.Time
	out   strings.Builder
}

// tell tells a story anew: what is indented in it is left out, and made again.
func tell(t *testing.T, story string) string {
	m := must.Get(New(Config{Who: "me", Concurrency: 8, Ahead: 3}))(t)
	start := time.Unix(1_000_000, 0)
	s := &teller{t: t, m: m, start: start, now: start}
	for _, line := range strings.Split(strings.TrimRight(story, "\n"), "\n") {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		s.out.WriteString(line + "\n")
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			s.hear(words)
			s.answer()
		}
	}
	return s.out.String()
}

// answer writes what follows.
func (s *teller) answer() {
	r := s.m.Ready(s.now)
	s.wake = r.WakeAt
	for _, a := range r.Do {
		fmt.Fprintf(&s.out, "    %s\n", strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "claim."))
	}
}

func (s *teller) hear(words []string) {
	switch what, rest := words[0], words[1:]; {
	case what == "after":
		d, err := time.ParseDuration(rest[0])
		s.check(err)
		s.now = s.now.Add(d)
	case what == "wake":
		s.now = s.wake
		fmt.Fprintf(&s.out, "    (at %v)\n", s.now.Sub(s.start))
	case what == "next":
		id, ok := s.m.Next(func(ID) bool { return true })
		fmt.Fprintf(&s.out, "    (claim %d, %v)\n", id, ok)
	case what == "holds":
		fmt.Fprintf(&s.out, "    (%v)\n", s.m.Holds(s.chunk(rest[0])))
	case what == "idle":
		fmt.Fprintf(&s.out, "    (%v)\n", s.m.Idle())
	default:
		s.m.Step(s.now, s.event(what, rest))
	}
}

// event reads a fact: its name, the claim it is about, and what it says; "error" stands for one.
func (s *teller) event(what string, rest []string) Event {
	var err error
	if len(rest) > 0 && rest[len(rest)-1] == "error" {
		err, rest = errors.New("it is away"), rest[:len(rest)-1]
	}
	rest = append(rest, "", "")
	switch what {
	case "connected":
		return Connected{s.now}
	case "no-chunk":
		return FetchEnded{rest[0], err}
	case "offered":
		return Offered{slices.DeleteFunc(rest, func(s string) bool { return s == "" })}
	case "delivered":
		return Delivered{s.id(rest[0]), s.chunk(rest[1])}
	case "told":
		return ClaimedByOther{s.chunk(rest[0]), s.name(rest[1])}
	case "drain":
		return Drained{}
	case "cancel":
		return Canceled{rest[0]}
	case "resume":
		return Resumed{rest[0]}
	}
	if e := s.ofItem(what, s.id(rest[0]), rest[1:], err); e != nil {
		return e
	}
	return s.ofClaim(what, s.id(rest[0]), rest[1:], err)
}

func (s *teller) ofItem(what string, id ID, rest []string, err error) Event {
	switch what {
	case "read-out":
		return ReadOut{id, err}
	case "saved":
		return Saved{id, s.number(rest[0])}
	case "fed":
		return Fed{id, s.number(rest[0])}
	case "begun":
		return Begun{id, s.number(rest[0])}
	case "missed":
		return Missed{id, s.number(rest[0])}
	case "took":
		return Took{id, s.number(rest[0])}
	case "not-run":
		return Unrun{id, s.number(rest[0])}
	}
	return nil
}

func (s *teller) ofClaim(what string, id ID, rest []string, err error) Event {
	switch what {
	case "beat":
		return BeatEnded{id, err, rest[0] == "forgotten"}
	case "acked":
		return Acked{id, err}
	case "part":
		return PartLooked{id, rest[0] == "there", err}
	case "listed":
		return Listed{id, s.names(rest), err}
	case "created":
		return Created{id, rest[0] == "taken", err}
	case "journals":
		return JournalsRead{id, rest[0] == "gone", err}
	case "journal-broke":
		return JournalBroke{id, errors.New("no space left")}
	case "closed":
		return Closed{id}
	case "joined":
		return Joined{id, map[string]Outcome{"": Made, "taken": Taken, "incomplete": Incomplete}[rest[0]], err}
	case "cleaned":
		return Cleaned{id}
	case "says":
		return Answered{id, rest[0], rest[1] == "yes", rest[1] == "nothing"}
	}
	s.t.Fatalf("what is %q?", what)
	return nil
}

func (s *teller) check(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
}

func (s *teller) number(text string) int {
	n, err := strconv.Atoi(text)
	s.check(err)
	return n
}

func (s *teller) id(text string) ID { return ID(s.number(text)) }

func (s *teller) chunk(text string) Chunk {
	job, rest, _ := strings.Cut(text, "/")
	n, round, retry := strings.Cut(rest, ".r")
	c := Chunk{Job: job, Number: s.number(n)}
	if retry {
		c.Round = s.number(round)
	}
	return c
}

func (s *teller) name(text string) Name {
	n, ok := ParseName(text)
	if !ok {
		s.t.Fatalf("%q is no name", text)
	}
	return n
}

func (s *teller) names(texts []string) (names []Name) {
	for _, text := range texts {
		if text != "" {
			names = append(names, s.name(text))
		}
	}
	return names
}
