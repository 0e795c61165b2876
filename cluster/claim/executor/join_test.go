package executor

import (
	"errors"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/store"
)

// A part is made if nothing is missing, and once. What is gone from the journals somebody else may have
// joined; if nobody has, the chunk is not done.
func TestJoin(t *testing.T) {
	w := newWorld(t, 1, 40)
	a, b, c := claim.Name{Turn: 1, Who: "a", Claim: 1}, claim.Name{Turn: 2, Who: "b", Claim: 1}, claim.Name{Turn: 3, Who: "c", Claim: 1}
	w.journal(a, func(line int) bool { return line <= 20 })
	w.journal(b, func(line int) bool { return line >= 10 })
	j := joining{store: w.store, chunk: w.chunks[0], job: w.job("w"), plan: w.plan()}
	for _, step := range []struct {
		journals []claim.Name
		want     claim.Outcome
	}{
		{journals: []claim.Name{a}, want: claim.Incomplete},
		{journals: []claim.Name{a, c}, want: claim.Incomplete}, // c is not there
		{journals: []claim.Name{c, a, b}, want: claim.Made},
		{journals: []claim.Name{a, b}, want: claim.Taken},
		{journals: []claim.Name{a, c}, want: claim.Taken},
	} {
		j.journals = step.journals
		sums, got, err := j.make(t.Context())
		if got != step.want || err != nil {
			t.Errorf("of %v: %v, %v, want %v", step.journals, got, err, step.want)
		}
		if got == claim.Made && (sums.Lines != 40 || sums.Skipped != 1) {
			t.Errorf("%+v", sums)
		}
	}
	if got, want := w.results(), w.alone(); got != want {
		t.Error(firstDifference(got, want))
	}
	fault := func(string, string) error { return errFault }
	j.store, j.journals = faulty{Store: w.store, before: fault}, []claim.Name{a, b}
	if _, got, err := j.make(t.Context()); got == claim.Made || !errors.Is(err, errFault) {
		t.Errorf("where nothing can be read: %v, %v", got, err)
	}
}

// journal writes the lines of some items of the first chunk.
func (w *world) journal(n claim.Name, which func(line int) bool) {
	w.t.Helper()
	j, err := store.CreateJournal(w.t.Context(), w.store, journalName(&w.chunks[0], n), store.JournalConfig{})
	if err != nil {
		w.t.Fatal(err)
	}
	maker := promptfile.NewMaker(promptfile.Config{Checked: true})
	var sums promptfile.Sums
	for req, err := range w.read(w.t.Context(), w.chunks[0]) {
		if err != nil || !which(req.Line) {
			continue
		}
		it := maker.Item(req)
		l, _ := maker.Line(&promptfile.Result{Item: it, Value: w.reply(it), Lane: "m", Attempts: 1}, &sums)
		if err := j.Write(w.t.Context(), text(&l)); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := j.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// plan is that of the first chunk.
func (w *world) plan() (p plan) {
	for _, err := range w.read(w.t.Context(), w.chunks[0]) {
		var bad *prompts.LineError
		if errors.As(err, &bad) {
			p.note(bad, func(string) bool { return true })
			continue
		}
		p.items++
	}
	return p
}
