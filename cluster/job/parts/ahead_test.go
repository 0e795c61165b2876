package parts

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func numbers(n int, last error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
		if last != nil {
			yield(0, last)
		}
	}
}

// So many are under way at a time as are to be, and what comes of them comes in order.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var got []int
		slower := func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Second + time.Duration(5-i%5)*time.Millisecond)
			return 2 * i, nil
		}
		for r, err := range ahead(t.Context(), 4, numbers(12, nil), slower, func(int) {}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if len(got) != 12 || !slices.IsSorted(got) || got[11] != 22 {
			t.Errorf("%v", got)
		}
		if took := time.Since(began); took < 3*time.Second || took >= 4*time.Second {
			t.Errorf("twelve seconds, four at a time, took %v", took)
		}
	})
}

// The first error is the last thing, wherever it comes from; what is done behind it is dropped.
func TestAheadThatFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		all  iter.Seq2[int, error]
		do   func(context.Context, int) (int, error)
		want int
	}{
		"at its work":      {numbers(10, nil), func(_ context.Context, i int) (int, error) { return i, map[bool]error{true: broken}[i == 3] }, 3},
		"in what is there": {numbers(5, broken), func(_ context.Context, i int) (int, error) { return i, nil }, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			dropped, given := 0, 0
			for _, err := range ahead(t.Context(), 3, c.all, c.do, func(int) { dropped++ }) {
				if err == nil {
					given++
				} else if !errors.Is(err, broken) {
					t.Error(err)
				}
			}
			if given != c.want || dropped > 2 {
				t.Errorf("%s: %d given, %d dropped", name, given, dropped)
			}
		})
	}
}

// Who leaves does not wait for what would take for ever.
func TestAheadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := func(ctx context.Context, i int) (int, error) {
			if i == 0 {
				return 0, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		for range ahead(t.Context(), 3, numbers(10, nil), waits, func(int) { t.Error("nothing was done that could be dropped") }) {
			break
		}
	})
}
