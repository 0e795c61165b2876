package timeline

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/observe"
)

// notices are what a Writer says, to be read when it is closed.
type notices struct {
	sync.Mutex
	said []string
}

func (n *notices) say(text string) {
	n.Lock()
	defer n.Unlock()
	n.said = append(n.said, text)
}

func (n *notices) list() string {
	n.Lock()
	defer n.Unlock()
	return strings.Join(n.said, "\n")
}

func kinds(t *testing.T, path string) (list []kind) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	for line := range bytes.Lines(text) {
		list = append(list, parse(bytes.TrimSuffix(line, []byte("\n"))).kind)
	}
	return list
}

// A run's lines: its start, samples, what failed each minute if it has changed, and at the
// end what failed, what it came to, and how it stood.
func TestWriter(t *testing.T) {
	path, chance, done, failed := tempPath(t), newChance(1), 0, 1
	var said notices
	w, err := Open(Config{
		Path: path, At: noon, Notice: said.say,
		Start:    map[string]any{"event": "start", "format": "1.0", "run": "a"},
		Progress: func() *event.Progress { done++; return aProgress(done) },
		Failures: func() []observe.Failure {
			return []observe.Failure{{Kind: "invalid", Code: "400", Message: "too long", Count: failed, Examples: make([]observe.Example, 9)}}
		},
	})
	must(t, err)
	for n := 1; n <= 130; n++ {
		w.Sample(aSample(n, chance))
	}
	w.Close(map[string]any{"event": "summary", "exit_code": 1})
	list := kinds(t, path)
	want := map[kind]int{start: 1, sample: 130, failures: 1, summary: 1, progress: 1}
	got := map[kind]int{}
	for _, k := range list {
		got[k]++
	}
	if len(list) < 5 || list[0] != start || list[len(list)-2] != summary || list[len(list)-1] != progress || said.list() != "" {
		t.Errorf("%v: %s", list, said.list())
	}
	// The number of samples varies with the writer's speed: those that it was too slow for
	// merge.
	if got[sample] = 130; len(got) != len(want) || got[failures] != 1 || got[summary] != 1 || got[progress] != 1 {
		t.Errorf("%v", got)
	}
	text, err := os.ReadFile(path)
	must(t, err)
	if bytes.Count(text, []byte(`"line":0`)) != maxExamples {
		t.Errorf("%s", text)
	}
	w, err = Open(Config{Path: path, At: noon})
	must(t, err)
	w.Close(nil)
	if list := kinds(t, path); list[len(list)-1] != start || list[len(list)-2] != summary {
		t.Errorf("%v", list)
	}
}

// What there is no room for is merged, and not lost.
func TestSlowDiskLosesNoCounts(t *testing.T) {
	path, chance, answered := tempPath(t), newChance(2), 0
	hold := make(chan struct{})
	first := true
	w, err := Open(Config{Path: path, At: noon, Progress: func() *event.Progress {
		if !first {
			<-hold
		}
		first = false
		return aProgress(answered)
	}})
	must(t, err)
	for n := 1; n <= 5*sampleRoom; n++ {
		s := aSample(n, chance)
		answered += s.Answered
		w.Sample(s)
	}
	close(hold)
	w.Close(nil)
	if got := samplesIn(t, path); answeredIn(got) != answered || len(got) > sampleRoom+2 {
		t.Errorf("%d answered of %d in %d samples", answeredIn(got), answered, len(got))
	}
}

// A nil Writer writes nothing.
func TestNoWriter(*testing.T) {
	var w *Writer
	w.Sample(observe.Sample{})
	w.Close(nil)
}

// A start that is too long only says when it was; what is no progress or summary is left
// out, and so is what is too long.
func TestWhatIsTooLong(t *testing.T) {
	path := tempPath(t)
	w, err := Open(Config{
		Path: path, At: noon, Start: map[string]string{"event": "start", "settings": strings.Repeat("x", maxStart)},
		Progress: func() *event.Progress {
			return &event.Progress{Event: "progress", Latest: strings.Repeat("x", maxProgress)}
		},
		Failures: func() []observe.Failure {
			return make([]observe.Failure, 10_000)
		},
	})
	must(t, err)
	w.Close(map[string]string{"event": "summary", "x": strings.Repeat("x", maxSummary)})
	text, err := os.ReadFile(path)
	must(t, err)
	if list := kinds(t, path); len(list) != 2 || list[1] != failures || len(text) > maxFailures+200 || !strings.Contains(string(text), `"at":"2026-11-21T12:00:00.000Z"}`) {
		t.Errorf("%v: %s", list, text)
	}
	if _, err := Open(Config{Path: path, Start: "x"}); err == nil {
		t.Error("a start that is none")
	}
}

// What others said steers no terminal on which the file is shown, and takes up no more than
// its room.
func TestMessagesAreClipped(t *testing.T) {
	long := strings.Repeat("ä\u202e", 1000)
	text := string(encodeFailures([]observe.Failure{{Kind: long, Code: long, Message: long, Examples: []observe.Example{{ID: long, Message: long}}}}, noon))
	if strings.Contains(text, "\u202e") || len(text) > 8*(3*maxWord+2*maxMessage)+300 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// A disk that hangs does not hold up the end of a run.
func TestDiskThatHangs(t *testing.T) {
	hold, asked, once := make(chan struct{}), make(chan struct{}), sync.Once{}
	first := true
	var said notices
	w, err := Open(Config{Path: tempPath(t), At: noon, Notice: said.say, Progress: func() *event.Progress {
		if !first {
			once.Do(func() { close(asked) })
			<-hold
		}
		first = false
		return nil
	}})
	must(t, err)
	w.Sample(aSample(1, newChance(1)))
	<-asked
	w.wait = time.Millisecond
	w.Close(nil)
	_ = w.file.f.Close() // writes fail from now on, and no notice says so
	close(hold)
	<-w.ended
	if got := said.list(); !strings.Contains(got, "is not up to date") || strings.Contains(got, "\n") {
		t.Errorf("said: %q", got)
	}
}
