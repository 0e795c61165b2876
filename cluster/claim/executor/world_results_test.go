package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/provider"
)

// finish waits until the queue is empty, and looks at what is there.
func (w *world) finish(within time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(within); w.queue.left() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			for _, k := range w.workers {
				k.die() // or the test would not end
			}
			w.t.Fatalf("%d chunks are left after %v", w.queue.left(), within)
		}
	}
}

// results are the lines of all parts, without what differs from run to run.
func (w *world) results() string {
	w.t.Helper()
	var all strings.Builder
	for _, c := range w.chunks {
		text, err := store.ReadAll(w.t.Context(), w.store, partName(&c), 1<<30)
		if err != nil {
			w.t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		for _, l := range lines[:len(lines)-2] { // the footer is no line
			all.WriteString(essence(w.t, []byte(l)))
		}
	}
	return all.String()
}

// essence returns the fields of a line that do not depend on its writer.
func essence(t testing.TB, text []byte) string {
	t.Helper()
	var p journal.Parser
	if _, err := p.Parse(text); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var l journal.Line
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	if l.Headrace.Calls > 0 != (len(l.Headrace.Failures) > 0) {
		t.Errorf("line %d has %d calls, and says of %d how they ended", l.Headrace.Line, l.Headrace.Calls, len(l.Headrace.Failures))
	}
	said := ""
	if l.Response != nil {
		said = string(l.Response.Body)
	}
	return fmt.Sprintf("%d %s %s %s %s %v\n", l.Headrace.Line, l.ID, l.CustomID, l.Headrace.Key, said, l.Error)
}

// alone returns the result of one process for the input.
func (w *world) alone() string {
	w.t.Helper()
	maker := promptfile.NewMaker(promptfile.Config{Checked: true})
	var all strings.Builder
	var sums promptfile.Sums
	for req, err := range prompts.NewReader(bytes.NewReader(w.input), prompts.Config{}).All() {
		var bad *prompts.LineError
		l := journal.Line{}
		if errors.As(err, &bad) {
			l = maker.BadLine(bad)
		} else {
			it := maker.Item(req)
			r := promptfile.Result{Item: it, Value: w.reply(it), Lane: "m", Attempts: 1}
			if w.fate != nil {
				if _, err := w.fate(it, 1_000_000); err != nil {
					r.Value, r.Err = provider.Reply{}, err
				}
			}
			l, _ = maker.Line(&r, &sums)
		}
		all.WriteString(essence(w.t, journal.AppendLine(nil, &l)))
	}
	return all.String()
}

// repeats are the calls that were made again of what had not failed.
func (w *world) repeats() (n int) {
	w.note(func() {
		for key, times := range w.calls {
			n += max(0, times-w.broken[key]-1)
		}
	})
	return n
}

// called counts all calls.
func (w *world) called() (n int) {
	w.note(func() {
		for _, times := range w.calls {
			n += times
		}
	})
	return n
}

// journals are those that are left.
func (w *world) journals() (names []string) {
	for o, err := range w.store.List(w.t.Context(), job.Folder(testJob)+"work/", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, o.Name)
	}
	return names
}

func (w *world) check(most int) {
	w.t.Helper()
	if got, want := w.results(), w.alone(); got != want {
		w.t.Errorf("the parts are not what one process makes:\n%s", firstDifference(got, want))
	}
	if n := w.repeats(); n > most {
		w.t.Errorf("%d calls are repeated, %d may be", n, most)
	}
	if w.opened != w.closed {
		w.t.Errorf("%d jobs are opened, and %d closed", w.opened, w.closed)
	}
}

func firstDifference(got, want string) string {
	g, v := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(v)) {
		if g[i] != v[i] {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, g[i], v[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(v))
}

func randomOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) } //nolint:gosec // no secret

// whole is the input as one chunk.
func (w *world) whole() job.Chunk {
	return job.Chunk{Job: testJob, Bytes: int64(len(w.input)), FirstLine: 1}
}

// sums are those of all parts of a round.
func (w *world) sums(round int) (all parts.Sums) {
	w.t.Helper()
	for _, c := range w.chunks {
		var sums parts.Sums
		for l, err := range parts.Read(w.t.Context(), w.store, c.Job, c.Number, round) {
			if errors.Is(err, store.ErrMissing) {
				break
			}
			if err != nil {
				w.t.Fatal(err)
			}
			sums.Lines++
			switch {
			case l.Code == promptfile.CodeInvalidLine:
				sums.Skipped++
			case l.Failed:
				sums.Failed++
			}
		}
		all = all.Plus(sums)
	}
	return all
}
