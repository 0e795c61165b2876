package timeline

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/observe"
)

// A copy has the lines of the file but for one that was not written to its end; a bare one leaves out the lines that quote
// others. A file that is none is not copied.
func TestCopy(t *testing.T) {
	path, failure := tempPath(t), observe.Failure{Kind: "invalid", Count: 1, Examples: []observe.Example{{Message: "a prompt"}}}
	w, err := Open(Config{Path: path, At: noon, Progress: func() *event.Progress { return aProgress(1) }, Failures: func() []observe.Failure { return []observe.Failure{failure} }})
	must(t, err)
	w.Sample(aSample(1, newChance(1)))
	w.Changed(event.Changed{Event: "changed", What: "concurrency", To: "8"})
	w.Close(map[string]string{"event": "summary", "stopped": "a prompt"})
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(text, []byte(`{"event":"sample",`+"\n"+`{"event":"progress"`)...), 0o600))
	for bare, want := range map[bool]string{false: "start sample failures changed summary progress", true: "start sample changed"} {
		var to bytes.Buffer
		must(t, Copy(&to, path, bare))
		kinds := map[string]int{}
		for line := range strings.Lines(to.String()) {
			kind, _, _ := strings.Cut(strings.TrimPrefix(line, `{"event":"`), `"`)
			kinds[kind]++
		}
		for kind := range strings.FieldsSeq(want) {
			if kinds[kind] != 1 {
				t.Errorf("bare %v: %d lines of kind %s", bare, kinds[kind], kind)
			}
		}
		if len(kinds) != len(strings.Fields(want)) || bare == strings.Contains(to.String(), "a prompt") || !bare && !bytes.HasPrefix(text, to.Bytes()[:len(text)]) {
			t.Errorf("bare %v: %s", bare, &to)
		}
	}
	must(t, os.WriteFile(path, []byte("mine\n"), 0o600))
	var to bytes.Buffer
	if err := Copy(&to, path, false); !errors.Is(err, ErrNotOurs) || to.Len() > 0 {
		t.Errorf("%v: %s", err, &to)
	}
	if err := Copy(&to, tempPath(t)+"none", false); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// A run that has no file is written so that it reads back.
func TestWriteRun(t *testing.T) {
	path, chance := tempPath(t), newChance(2)
	one := Run{At: noon, Start: event.Start{Event: "start", Run: "a", At: event.Stamp(noon), Settings: []event.Setting{}}}
	for k := range 3 {
		s := aSample(2*k+1, chance)
		one.Samples = append(one.Samples, s.Merge(aSample(2*k+2, chance)))
	}
	one.Changes = []event.Changed{{Event: "changed", At: event.Stamp(noon), What: "concurrency", From: "64", To: "8", By: "ctl"}}
	var to bytes.Buffer
	must(t, one.Write(&to))
	must(t, os.WriteFile(path, to.Bytes(), 0o600))
	runs, err := ReadRuns(path)
	must(t, err)
	if len(runs) != 1 || runs[0].Start.Run != "a" || !runs[0].At.Equal(noon) || len(runs[0].Samples) != 3 || !slices.Equal(runs[0].Changes, one.Changes) || runs[0].Samples[2].Answered != one.Samples[2].Answered {
		t.Errorf("%+v", runs)
	}
	if !strings.HasPrefix(to.String(), mark+`1,"span_s":2,"runs":1,"format"`) {
		t.Error(to.String()[:200])
	}
}
