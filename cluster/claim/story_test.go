package claim

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

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
			told := tell(t, string(text))
			if *rewrite {
				err = os.WriteFile(name, []byte(told), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !*rewrite && told != string(text) {
				t.Errorf("%s is told differently:\n%s", name, told)
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
	m, err := New(Config{Who: "me", Concurrency: 8, Ahead: 3})
	if err != nil {
		t.Fatal(err)
	}
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
		return Told{s.chunk(rest[0]), s.name(rest[1])}
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
