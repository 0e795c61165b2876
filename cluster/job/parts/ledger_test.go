package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
)

// counting is a store that counts what is asked of it.
type counting struct {
	*storetest.Memory
	lists, listed int
	opens         atomic.Int32
}

func (c *counting) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	c.opens.Add(1)
	return c.Memory.Open(ctx, name, offset, length)
}

func (c *counting) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	c.lists++
	return func(yield func(store.Object, error) bool) {
		for o, err := range c.Memory.List(ctx, prefix, after) {
			c.listed++
			if !yield(o, err) {
				return
			}
		}
	}
}

// put makes the name of a part be there, with nothing in it: a ledger looks at names.
func put(t testing.TB, s store.Store, n, round int) {
	t.Helper()
	must.Do(t, store.CreateBytes(t.Context(), s, job.PartName("j", n, round), nil))
}

// A ledger knows what a list of names would, whatever is there and whatever was added before.
func TestLedgerKnowsWhatIsThere(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := storetest.NewMemory()
		chunks, round := rng.IntN(4000), rng.IntN(3)
		var want []int
		if rng.IntN(2) == 0 {
			want = []int{}
			for n := range chunks {
				if rng.IntN(3) == 0 {
					want = append(want, n)
				}
			}
		}
		l := NewLedger(s, "j", round, chunks, want)
		for n := range chunks + 3 {
			if rng.IntN(50) > 0 && n != 2000 || n/1000 == 1 {
				put(t, s, n, round)
			}
			if rng.IntN(9) == 0 {
				put(t, s, n, round+1)
			}
		}
		for range 2 {
			must.Do(t, l.Refresh(t.Context()))
			checkLedger(t, l, s, chunks, round, want)
			for range 20 {
				n := rng.IntN(chunks + 1)
				if _, _, err := s.Identity(t.Context(), job.PartName("j", n, round)); err != nil {
					put(t, s, n, round)
					if rng.IntN(2) == 0 {
						l.Note(n)
					}
				}
			}
		}
	}
}

func checkLedger(t *testing.T, l *Ledger, s store.Store, chunks, round int, want []int) {
	t.Helper()
	var missing []int
	in := 0
	for n := range chunks {
		if want != nil && !slices.Contains(want, n) {
			continue
		}
		in++
		if _, _, err := s.Identity(t.Context(), job.PartName("j", n, round)); err != nil {
			missing = append(missing, n)
		}
	}
	if got := slices.Collect(l.Missing(0)); !slices.Equal(got, missing) || l.Len() != in || l.Done() != in-len(missing) || l.Whole() != (len(missing) == 0) {
		t.Fatalf("missing %v, not %v; %d of %d", got, missing, l.Done(), l.Len())
	}
	if from := chunks / 2; len(missing) > 0 {
		i, _ := slices.BinarySearch(missing, from)
		if got := slices.Collect(l.Missing(from)); !slices.Equal(got, missing[i:]) {
			t.Fatalf("missing from %d on: %v", from, got)
		}
	}
}

// A folder that is whole is not listed again, and once it was summed up not even by another keeper.
func TestWholeFoldersAreListedOnce(t *testing.T) {
	s := &counting{Memory: storetest.NewMemory()}
	const chunks = 3500
	for n := range chunks - 1 {
		write(t, s, n, 0, text(n+1, map[int]string{7: "timeout", 8: promptfile.CodeInvalidLine}[n%1000], ""))
	}
	l := NewLedger(s, "j", 0, chunks, nil)
	refresh := func(l *Ledger, listed, lists int) {
		t.Helper()
		s.lists, s.listed = 0, 0
		if err := l.Refresh(t.Context()); err != nil || l.Done() != chunks-1 {
			t.Fatal(err, l.Done())
		}
		if s.listed != listed || s.lists != lists {
			t.Errorf("%d names in %d lists, not %d", s.listed, s.lists, listed)
		}
	}
	refresh(l, chunks-1, 2)
	refresh(l, 499, 1)
	refresh(NewLedger(s, "j", 0, chunks, nil), chunks-1, 2)
	sums, err := l.SettleWhole(t.Context())
	if err != nil || sums.Parts != 3000 || sums.Lines != 3000 || sums.Failed != 3 || !slices.Equal(sums.Failing, []int{7, 1007, 2007}) {
		t.Fatalf("%+v, %v", sums, err)
	}
	s.lists = 0
	s.opens.Store(0)
	if again, err := l.SettleWhole(t.Context()); err != nil || again.Parts != 3000 || s.lists > 0 || s.opens.Load() > 0 {
		t.Errorf("%d parts, %v: %d lists, %d objects read", again.Parts, err, s.lists, s.opens.Load())
	}
	refresh(NewLedger(s, "j", 0, chunks, nil), 3+499, 2)
	must.Do(t, s.Delete(t.Context(), job.PartName("j", 5, 0)))
	gap := NewLedger(s, "j", 0, chunks, nil)
	gap.listed = true // it is to know of no sums
	for n := 1000; n < 3000; n++ {
		gap.Note(n)
	}
	s.lists, s.listed = 0, 0
	if err := gap.Refresh(t.Context()); err != nil || gap.Done() != chunks-2 || s.listed != 999+1+499 || s.lists != 2 {
		t.Errorf("%v, %d parts: %d names in %d lists", err, gap.Done(), s.listed, s.lists)
	}
	again, err := NewLedger(s, "j", 0, chunks, nil).Settle(t.Context(), 1)
	if err != nil || again.Parts != 1000 || !slices.Equal(again.Failing, []int{1007}) {
		t.Errorf("%+v, %v", again, err)
	}
}

// A chunk outside a round does not count, no matter what want or Note says.
func TestLedgerOfOtherChunks(t *testing.T) {
	l := NewLedger(storetest.NewMemory(), "j", 1, 2, []int{1, 2, 5000})
	for n, want := range map[int]bool{-1: false, 0: false, 1: true, 2: false, 5000: false} {
		if l.Note(n) != want {
			t.Errorf("chunk %d", n)
		}
	}
	if !l.Whole() || l.Len() != 1 || l.Note(1) {
		t.Errorf("%d of %d", l.Done(), l.Len())
	}
	if all := NewLedger(storetest.NewMemory(), "j", 0, 2, nil); all.Note(2) || all.Note(-1) || !all.Note(1) {
		t.Error("there are two chunks")
	}
}

// The sums of a last folder are not kept while chunks can come to it.
func TestLastFolderGrows(t *testing.T) {
	s := storetest.NewMemory()
	for n := range 5 {
		write(t, s, n, 0, text(n+1, "", ""))
	}
	l := NewLedger(s, "j", 0, 5, nil)
	if err := l.Refresh(t.Context()); err != nil || !l.Whole() {
		t.Fatal(err)
	}
	if sums, err := l.SettleWhole(t.Context()); err != nil || sums.Parts != 5 {
		t.Fatal(sums, err)
	}
	more := NewLedger(s, "j", 0, 8, nil)
	if err := more.Refresh(t.Context()); err != nil || more.Whole() || !slices.Equal(slices.Collect(more.Missing(0)), []int{5, 6, 7}) {
		t.Errorf("%v, %d done", err, more.Done())
	}
}

// A round is over once, when all its parts are there and have the lines that the inputs have; what
// failed and was tried again counts as it ended last.
func TestFinish(t *testing.T) {
	s := storetest.NewMemory()
	for n := range 3 {
		write(t, s, n, 0, some(1+n*10, 10)...)
	}
	l := NewLedger(s, "j", 0, 4, nil)
	finish := func(l *Ledger, lines int) (Done, error) {
		t.Helper()
		must.Do(t, l.Refresh(t.Context()))
		return l.Finish(t.Context(), lines)
	}
	if _, err := finish(l, 40); !errors.Is(err, ErrIncomplete) {
		t.Error(err)
	}
	write(t, s, 3, 0, some(31, 10)...)
	if _, err := finish(l, 41); !errors.Is(err, ErrCounts) {
		t.Error(err)
	}
	first, err := finish(l, 40)
	if err != nil || first.Parts != 4 || first.Lines != 40 || first.Failed != 11 || first.Done+first.Failed+first.Skipped != 40 {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := finish(NewLedger(s, "j", 0, 4, nil), 40); err != nil || again != first {
		t.Errorf("%+v, %v", again, err)
	}
	retry := NewLedger(s, "j", 1, 4, []int{0, 2})
	write(t, s, 0, 1, text(3, "", ""), text(6, "", ""), text(9, "timeout", ""))
	write(t, s, 2, 1, text(21, "", ""), text(24, "timeout", ""), text(27, "timeout", ""))
	second, err := finish(retry, 0)
	if err != nil || second.Parts != 2 || second.Lines != 40 || second.Failed != 8 || second.Sums.Done != first.Sums.Done+3 {
		t.Errorf("%+v, %v", second, err)
	}
	if second.Usage.InputTokens != first.Usage.InputTokens+18 {
		t.Errorf("what the second round has used is not counted: %+v", second.Usage)
	}
	if _, err := LoadDone(t.Context(), s, "j", 2); !errors.Is(err, store.ErrMissing) {
		t.Error(err)
	}
}

// A sum of a folder that has other parts than it should, or broken ones, is none.
func TestSettleWhatIsNotWhole(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, some(1, 3)...)
	put(t, s, 1, 0)
	l := NewLedger(s, "j", 0, 2, nil)
	if _, err := l.Settle(t.Context(), 0); !errors.Is(err, ErrDamaged) || !strings.Contains(fmt.Sprint(err), "000000/001") {
		t.Error(err)
	}
	if _, err := NewLedger(s, "j", 0, 3, []int{0, 2}).Settle(t.Context(), 0); err == nil {
		t.Error("a part is missing")
	}
}

// A part that is lost of a folder that was summed up is found by who looks for it. Once the round is reopened a ledger that
// trusts sums knows it too.
func TestLedgerFindsLostParts(t *testing.T) {
	s := storetest.NewMemory()
	const chunks = PerFolder + 5
	for n := range chunks {
		put(t, s, n, 0)
	}
	for _, name := range []string{job.SumsName("j", 0, 0), job.DoneName("j", 0)} {
		must.Do(t, store.CreateBytes(t.Context(), s, name, []byte("{}")))
	}
	lost := func() []int {
		t.Helper()
		all := must.Get(NewLedger(s, "j", 0, chunks, nil).Lost(t.Context()))(t)
		return all
	}
	trusting := func() []int {
		t.Helper()
		l := NewLedger(s, "j", 0, chunks, nil)
		must.Do(t, l.Refresh(t.Context()))
		return slices.Collect(l.Missing(0))
	}
	if all := lost(); len(all) != 0 {
		t.Fatalf("%v are lost of a whole round", all)
	}
	want := []int{7, PerFolder + 2}
	for _, n := range want {
		must.Do(t, s.Delete(t.Context(), job.PartName("j", n, 0)))
	}
	if all := lost(); !slices.Equal(all, want) {
		t.Errorf("%v are lost, want %v", all, want)
	}
	must.Do(t, Reopen(t.Context(), s, "j", 0, want))
	if all := trusting(); !slices.Equal(all, want) {
		t.Errorf("a ledger misses %v, want %v", all, want)
	}
	if _, err := LoadDone(t.Context(), s, "j", 0); !errors.Is(err, store.ErrMissing) {
		t.Errorf("the round is over still: %v", err)
	}
}

// A set holds what was put in, and nothing else: as a map would.
func TestSetIsASet(t *testing.T) {
	rng, slow := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	var fast bitSet
	for range 5000 {
		n := rng.IntN(700)
		if fast.has(n) != slow[n] || fast.add(n) == slow[n] {
			t.Fatalf("%d: the map says %t", n, slow[n])
		}
		if slow[n] = true; fast.len != len(slow) {
			t.Fatalf("%d numbers, the map has %d", fast.len, len(slow))
		}
	}
	if fast.has(-1) || fast.has(1<<40) || !fast.has(0) {
		t.Error("what is far out is there")
	}
}
