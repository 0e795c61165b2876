package promptfile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// edit changes the input of a run between two moments.
type edit func(t *testing.T, path string)

func appending(line string) edit {
	return func(t *testing.T, path string) { write(t, path, read(t, path)+line+"\n") }
}

func replace(old, by string) edit {
	return func(t *testing.T, path string) { write(t, path, strings.Replace(read(t, path), old, by, 1)) }
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}

// A change of the input is an error wherever it falls: between check and reading, or when all was read.
// The next run asks what is left. A new time stamp, a line behind the limit, or a file that is gone is no change.
func TestAChangedInputIsReported(t *testing.T) {
	touch := func(t *testing.T, path string) {
		must.Do(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	}
	remove := func(t *testing.T, path string) { _ = os.Remove(path) }
	other := func(t *testing.T, path string) {
		write(t, path+".new", ask("z")+"\n")
		must.Do(t, os.Rename(path+".new", path))
	}
	for _, c := range []struct {
		name    string
		edit    edit
		limit   int
		late    bool // while the last item is asked, which is read by then
		changed bool
		next    string // what the next run asks
	}{
		{"truncated", replace("\n"+ask("c"), ""), 0, false, true, ""},
		{"emptied", func(t *testing.T, path string) { write(t, path, "") }, 0, false, true, ""},
		{"appended", appending(ask("d")), 0, false, true, ""},
		{"appended late", appending(ask("d")), 0, true, true, "d"},
		{"edited", replace(`"id":"b"`, `"id":"x"`), 0, false, true, ""},
		{"edited late", replace(`"id":"b"`, `"id":"x"`), 0, true, true, "x"},
		{"swapped", replace(ask("a")+"\n"+ask("b"), ask("b")+"\n"+ask("a")), 0, false, true, ""},
		{"another file", other, 0, true, true, "z"},
		{"touched", touch, 0, false, false, ""},
		{"touched late", touch, 0, true, false, ""},
		{"removed late", remove, 0, true, false, ""},
		{"behind the limit", appending(ask("d")), 3, false, false, ""},
		{"behind the limit, late", appending(ask("d")), 3, true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t, ask("a"), ask("b"), ask("c"))
			d.cfg.Concurrency, d.cfg.Reader.Limit = 1, c.limit
			job := d.open()
			must.Get(job.Plan())(t)
			if !c.late {
				c.edit(t, d.in)
			}
			sums, err := job.Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) {
				if c.late && it.ID == "c" {
					c.edit(t, d.in)
				}
				return good, nil
			})
			if err := job.Close(); err != nil {
				t.Error(err)
			}
			if got := errors.Is(err, ErrChanged); got != c.changed || (sums.Changed != nil) != c.changed || sums.InputErr != nil {
				t.Errorf("%v; changed: %v, input: %v", err, sums.Changed, sums.InputErr)
			}
			if !c.changed {
				return
			}
			if _, asked, err := d.run(); err != nil || asked != c.next {
				t.Errorf("the next run asks %q, %v; want %q", asked, err, c.next)
			}
		})
	}
}

// A file rewritten with the same text may be read while it is shorter: the text read then
// differs from the text checked.
func TestAnInputWrittenAnewIsReported(t *testing.T) {
	whole := ask("a") + "\n" + ask("b") + "\n"
	d := newFixture(t, ask("a"), ask("b"))
	job := d.open()
	must.Get(job.Plan())(t)
	write(t, d.in, ask("a")+"\n")
	_, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
		write(t, d.in, whole)
		return good, nil
	})
	if fault := job.Close(); fault != nil || !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "2 items were checked and 1 were read") {
		t.Errorf("%v, %v", err, fault)
	}
	if _, asked, err := d.run(); err != nil || asked != "b" {
		t.Errorf("the next run asks %q, %v", asked, err)
	}
}

// Ids are checked when the input is read, too: a line with an id that is taken by then is not asked.
func TestAnIDAppendedAfterTheCheckIsNotAskedTwice(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"))
	d.cfg.Concurrency = 1
	job := d.open()
	must.Get(job.Plan())(t)
	appending(strings.Replace(ask("a"), `"p"`, `"another"`, 1))(t, d.in)
	var asked []string
	sums, err := job.Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) {
		asked = append(asked, it.ID)
		return good, nil
	})
	if !errors.Is(err, ErrChanged) || !errors.Is(sums.InputErr, prompts.ErrDuplicateID) || !strings.Contains(err.Error(), "in.jsonl:3: custom_id \"a\"") {
		t.Errorf("%v", err)
	}
	if err := job.Close(); err != nil || !slices.Equal(asked, []string{"a", "b"}) {
		t.Errorf("asked %q, %v", asked, err)
	}
}

// However an input is truncated, appended to or edited during a run: a run without an error leaves no
// item of it unasked, no id stands twice in the output, and one more run completes what one has left. SEEDS=n
// tries n changes.
func TestNoChangeLeavesAnItemUnasked(t *testing.T) {
	const items = 12
	reported, seeds := 0, uint64(30)
	if given, err := strconv.ParseUint(os.Getenv("SEEDS"), 10, 64); err == nil {
		seeds = given
	}
	for seed := range seeds {
		chance := rand.New(rand.NewPCG(seed, 1))
		var lines []string
		for n := range items { // longer than a read: what is behind the first is read later
			lines = append(lines, fmt.Sprintf(`{"id":"%d","prompt":%q,"model":"m"}`, n, strings.Repeat("p", chance.IntN(20_000))))
		}
		d := newFixture(t, lines...)
		d.cfg.Concurrency, d.cfg.Durability = 1, saver.OS
		job := d.open()
		at, seen := chance.IntN(items), 0
		must.Get(job.Plan())(t)
		if at == 0 {
			randomEdit(t, chance, d.in)
		}
		_, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
			if seen++; seen == at {
				randomEdit(t, chance, d.in)
			}
			return good, nil
		})
		must.Do(t, job.Close())
		if err != nil {
			reported++
			if _, _, err = d.run(); err != nil {
				continue // the input is torn now, and says so
			}
		}
		checkAllAsked(t, d, seed)
	}
	if reported < int(seeds)/2 {
		t.Errorf("only %d of %d changes were reported", reported, seeds)
	}
}

// randomEdit does to a file what programs and people do.
func randomEdit(t *testing.T, chance *rand.Rand, path string) {
	lines := strings.SplitAfter(strings.TrimSuffix(read(t, path), "\n"), "\n")
	at := chance.IntN(len(lines))
	switch chance.IntN(5) {
	case 0: // truncated at a line
		lines = lines[:at]
	case 1: // truncated anywhere
		lines[at] = lines[at][:chance.IntN(len(lines[at]))]
		lines = lines[:at+1]
	case 2:
		lines = append(lines, "\n"+ask(fmt.Sprint("new", at)))
	case 3: // to the same length
		lines[at] = strings.Replace(lines[at], `"model":"m"`, `"model":"n"`, 1)
	case 4:
		lines = slices.Insert(lines, at, ask("new")+"\n")
	}
	write(t, path, strings.Join(lines, ""))
}

// checkAllAsked finds items of the input without a result, and ids with two.
func checkAllAsked(t *testing.T, d *jobFixture, seed uint64) {
	t.Helper()
	done, err := journal.ReadJournal(d.out)
	if err != nil {
		t.Fatal(err)
	}
	in := must.Get(File(d.in))(t)
	_, err = Scan(in, prompts.Config{}, nil, func(r prompts.Request) {
		if !done.Keys.Has(r.Key) {
			t.Errorf("seed %d: item %s was never asked", seed, r.ID)
		}
	})
	if err != nil || done.IDs.Len() != done.Lines {
		t.Errorf("seed %d: %d ids in %d lines, %v", seed, done.IDs.Len(), done.Lines, err)
	}
}
