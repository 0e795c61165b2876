package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/store"
)

// Plain is a store with the methods of [store.Store] alone, like those that cannot append.
type Plain struct{ store.Store }

// still configures a journal that writes a piece only when it is full, or on request: its clock stands.
func still(lines int) store.JournalConfig {
	return store.JournalConfig{Lines: lines, Clock: clockwork.NewFakeClock(), Every: time.Hour}
}

func lines(t testing.TB, s store.Store, name string) []string {
	t.Helper()
	var got []string
	for line, err := range store.ReadJournal(t.Context(), s, name) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
	return got
}

func begin(t testing.TB, s store.Store, name string, cfg store.JournalConfig) store.Journal {
	t.Helper()
	j, err := store.CreateJournal(t.Context(), s, name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func piecewise(t *testing.T, s store.Store) { journals(t, Plain{s}) }

// journals tests a journal from its beginning to its end, and then the names, the deletion and the
// tearing of journals.
func journals(t *testing.T, s store.Store) {
	j := begin(t, s, "work/7/1-me", still(3))
	same(t, "one that was begun", lines(t, s, "work/7/1-me"), nil)
	_, err := store.CreateJournal(t.Context(), s, "work/7/1-me", still(3))
	is(t, err, store.ErrExists, "work/7/1-me")

	want := written(t, j)
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "flushed", lines(t, s, "work/7/1-me"), want)
	if err := errors.Join(j.Write(t.Context(), []byte("last")), j.Sync(t.Context()), j.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	same(t, "closed", lines(t, s, "work/7/1-me"), append(want, "last"))
	if err := j.Write(t.Context(), []byte("late")); err == nil {
		t.Error("a journal was written to after it was closed")
	}
	journalNames(t, s)
	journalDeleted(t, s)
	journalTorn(t, s)
}

// written writes lines of all lengths, and returns them.
func written(t testing.TB, j store.Journal) []string {
	t.Helper()
	var want []string
	for n := range 20 {
		line := strings.Repeat(fmt.Sprintf("%d ", n), 1<<n/8)
		want = append(want, line)
		buf := []byte(line)
		if err := j.Write(t.Context(), buf); err != nil {
			t.Fatal(err)
		}
		clear(buf) // the journal must not keep it
	}
	if err := j.Write(t.Context(), []byte("two\nlines")); err == nil {
		t.Error("a line feed was taken")
	}
	return want
}

// journalNames tests which names count as journals, in the order of their objects. It needs the
// one that journals has made.
func journalNames(t *testing.T, s store.Store) {
	put(t, s, "work/7/no-journal", "")
	put(t, s, "work/7/1-me.other", "")
	for _, name := range []string{"work/7/10-me", "work/7/2-me", "work/8/1-me", "work/7/1-me-too"} {
		j := begin(t, s, name, still(2))
		written(t, j)
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for name, err := range store.Journals(t.Context(), s, "work/7/") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	same(t, "journals", names, []string{"work/7/1-me-too", "work/7/1-me", "work/7/10-me", "work/7/2-me"})
	for _, err := range store.Journals(t.Context(), s, "work/") {
		if err != nil {
			t.Error(err)
		}
		break
	}
	for _, name := range []string{"", "a.b", "a/b.c", "../x"} {
		_, err := store.CreateJournal(t.Context(), s, name, still(1))
		is(t, err, store.ErrName, "journal")
	}
}

// journalDeleted tests that a deletion takes all of one journal and nothing else, and can be
// repeated. It needs those that journalNames has made.
func journalDeleted(t *testing.T, s store.Store) {
	for range 2 {
		if err := store.DeleteJournal(t.Context(), s, "work/7/2-me"); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range store.ReadJournal(t.Context(), s, "work/7/2-me") {
		is(t, err, store.ErrMissing, "work/7/2-me")
	}
	if len(lines(t, s, "work/7/10-me")) != 20 || len(list(t, s, "work/7/2-me", "")) != 0 {
		t.Error("one was deleted that was not to be, or not all of it")
	}
}

// journalTorn checks that a line without a line feed is left out, and that reading stops on request.
func journalTorn(t *testing.T, s store.Store) {
	put(t, s, "torn.append", "whole\n\nalso whole\ntorn, as its writer was kil")
	same(t, "torn", lines(t, s, "torn"), []string{"whole", "", "also whole"})
	for _, err := range store.ReadJournal(t.Context(), s, "torn") {
		if err != nil {
			t.Error(err)
		}
		break
	}
	put(t, s, "gap.000000", "")
	put(t, s, "gap.000002", "x\n")
	var got error
	for _, err := range store.ReadJournal(t.Context(), s, "gap") {
		got = err
	}
	if got == nil || !strings.Contains(got.Error(), "gap.000002 comes where gap.000001 should") {
		t.Errorf("a piece is missing: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range store.ReadJournal(ctx, s, "torn") {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// Pieces returns the number of objects in a journal.
func Pieces(t testing.TB, s store.Store, name string) int {
	t.Helper()
	return len(slices.Collect(func(yield func(string) bool) {
		for _, n := range list(t, s, name+".", "") {
			yield(n)
		}
	}))
}
