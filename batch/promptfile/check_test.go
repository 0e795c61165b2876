package promptfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// checking makes the fixture's job refuse answers that are not ok, and each answer keep room until
// it is given back. It returns the number of answers that still do.
func (d *jobFixture) checking(ok func(id string, call int) bool) (held *atomic.Int32) {
	calls := map[string]int{}
	held = new(atomic.Int32)
	d.answer = func(it *Item) (provider.Reply, error) {
		calls[it.ID]++
		held.Add(1)
		reply := good
		reply.Body = fmt.Appendf(nil, `{"ok":%t}`, ok(it.ID, calls[it.ID]))
		reply.Done = func() { held.Add(-1) }
		return reply, nil
	}
	d.cfg.Check = func(_ *Item, r *provider.Reply) error {
		if bytes.Contains(r.Body, []byte("true")) {
			return nil
		}
		return errors.New("it is not ok")
	}
	d.cfg.CheckRetries = 2
	return held
}

// An answer that does not fit is asked for again. If none does, the errors file has the item with
// the latest answer; a later run asks it only with RetryFailed. No answer keeps its room.
func TestAnswersAreChecked(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), ask("c"))
	held := d.checking(func(id string, call int) bool { return id == "a" || id == "c" && call > 1 })
	sums, asked, err := d.run()
	if err != nil || asked != "a b c" && asked != "a b b c" || sums.Kinds["schema"] == 0 || held.Load() != 0 {
		t.Fatalf("asked %s: %v, %+v, %d held", asked, err, sums, held.Load())
	}
	failed := string(must.Get(os.ReadFile(journal.ErrorsPath(d.out)))(t))
	if !strings.Contains(failed, `"error":{"code":"schema","message":"schema: 200: it is not ok"}`) || !strings.Contains(failed, `"body":{"ok":false}`) {
		t.Errorf("the errors file has\n%s", failed)
	}
	if _, asked, _ := d.run(); asked != "" {
		t.Errorf("the second run asked %s", asked)
	}
	d.cfg.RetryFailed = true
	d.checking(func(string, int) bool { return true })
	if sums, asked, err := d.run(); err != nil || !strings.Contains(asked, "b") || sums.Succeeded == 0 {
		t.Errorf("with RetryFailed: asked %s: %v, %+v", asked, err, sums)
	}
	if p := d.progress(); p.Done != 3 || p.Failed != 0 {
		t.Errorf("at the end: %+v", p)
	}
}

// All items together are asked again a tenth as often as there are items to ask, at least once.
func TestChecksHaveABudget(t *testing.T) {
	for items, more := range map[int]int{1: 1, 9: 1, 40: 4} {
		var lines []string
		for n := range items {
			lines = append(lines, ask(fmt.Sprint(n)))
		}
		d := newFixture(t, lines...)
		d.checking(func(string, int) bool { return false })
		_, asked, err := d.run()
		if n := len(strings.Fields(asked)); err != nil || n != items+more {
			t.Errorf("%d items were asked %d times: %v", items, n, err)
		}
	}
}

// Where filtered answers fail, they do not need to fit.
func TestFilteredAnswersAreNotChecked(t *testing.T) {
	for fails, misfits := range map[bool]int{true: 0, false: 1} {
		d := newFixture(t, ask("a"))
		d.checking(nil)
		d.answer = func(*Item) (provider.Reply, error) {
			return provider.Reply{Status: 200, Body: []byte(`{}`), Finish: "content_filter"}, nil
		}
		d.cfg.FilteredFails = fails
		if sums, _, err := d.run(); err != nil || sums.Kinds["schema"] != misfits {
			t.Errorf("%t: %v, %+v", fails, err, sums)
		}
	}
}

// An answer gives its room back also if its check panics: the calls behind it would wait for that room for ever.
func TestCheckThatPanicsKeepsNoRoom(t *testing.T) {
	d := newFixture(t, ask("a"))
	held := d.checking(nil)
	d.answer = func(*Item) (provider.Reply, error) {
		reply := good
		held.Add(1)
		reply.Done = func() { held.Add(-1) }
		return reply, nil
	}
	d.cfg.Check = func(*Item, *provider.Reply) error { panic("no") }
	if sums, _, err := d.run(); err != nil || sums.Kinds["panic"] != 1 || held.Load() != 0 {
		t.Errorf("%v, %+v, %d held", err, sums, held.Load())
	}
}

// A program that makes its own calls learns what is wrong with an answer, and how many answers to an item did not fit. A filtered
// answer is no misfit where it fails, and nothing is where nothing is checked.
func TestMisfitOfAnItem(t *testing.T) {
	cfg := Config{Check: func(_ *Item, r *provider.Reply) error {
		if string(r.Body) == "good" {
			return nil
		}
		return errors.New("it is not good")
	}}
	filters := cfg
	filters.FilteredFails = true
	it := &Item{}
	for i, c := range []struct {
		of           *Config
		body, finish string
		misfits      int
	}{
		{&cfg, "good", "stop", 0},
		{&cfg, "bad", "stop", 1},
		{&filters, "bad", "content_filter", 1},
		{&cfg, "bad", "content_filter", 2},
		{&Config{}, "bad", "stop", 2},
		{&filters, "bad", "stop", 3},
	} {
		before, given := it.Misfits(), 0
		fault := c.of.Misfit(it, &provider.Reply{Status: 200, Body: []byte(c.body), Finish: c.finish, Done: func() { given++ }})
		if fits := c.misfits == before; (fault == nil) != fits || it.Misfits() != c.misfits || (given == 0) != fits {
			t.Errorf("answer %d: %v, %d misfits, given back %d times", i, fault, it.Misfits(), given)
		}
		if fault != nil && (fault.Kind != provider.Misfit || fault.Status != 200 || string(fault.Body) != c.body || fault.AskAgain) {
			t.Errorf("answer %d: %+v", i, fault)
		}
	}
}
