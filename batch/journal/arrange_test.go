package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/disk"
)

func goOn() error { return nil }

func orderOf(ids ...string) *Order {
	o := new(Order)
	for _, id := range ids {
		o.Add(keyOf(id))
	}
	return o
}

func linesOf(ids ...string) string {
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(journalLine(id, ""))
	}
	return text.String()
}

// Whatever order lines stand in, they are brought into the one that is wanted, each as it
// was; those that it does not have stand behind, as they stood. A file that stands so is
// not written.
func TestArrange(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		var all, here []string
		for n := range 60 {
			all = append(all, fmt.Sprint("item", strings.Repeat("x", n%7), n))
		}
		for _, n := range r.Perm(60)[:r.IntN(60)] {
			here = append(here, all[n])
		}
		if seed%5 == 0 && len(here) > 0 {
			here = append(here, here[0]) // one that stands there twice, which none should
		}
		known := all[:r.IntN(61)]
		want := slices.Clone(here)
		slices.SortStableFunc(want, func(a, b string) int { return rankIn(known, a) - rankIn(known, b) })
		path := writeFile(t, linesOf(here...))
		for again, wantMoved := range []bool{!slices.Equal(here, want), false} {
			var w watched
			moved, err := arrange(w.disk(), path, orderOf(known...), goOn)
			if err != nil || moved != wantMoved || (len(w.did) > 0) != wantMoved || textOf(t, path) != linesOf(want...) {
				t.Fatalf("seed %d, time %d: moved %t, want %t, %v, %d steps", seed, again, moved, wantMoved, err, len(w.did))
			}
		}
	}
}

func rankIn(all []string, id string) int {
	if n := slices.Index(all, id); n >= 0 {
		return n
	}
	return len(all)
}

// The new file is on the disk before it has the name. If the disk refuses the new file, or
// somebody stops the work, the old file stays as it was, with nothing next to it.
func TestArrangeAtOnceOrNotAtAll(t *testing.T) {
	before, after := linesOf("c", "a", "b"), linesOf("a", "b", "c")
	path := writeFile(t, before)
	full, enough := errors.New("no space left on device"), errors.New("enough")
	broken := disk.Real()
	broken.SyncData = func(*os.File) error { return full }
	if _, err := arrange(broken, path, orderOf("a", "b", "c"), goOn); !errors.Is(err, full) || textOf(t, path) != before {
		t.Errorf("%v", err)
	}
	for asked := range 6 { // once in the check, for each of three lines, and for each of two stretches
		n := 0
		_, err := Arrange(path, orderOf("a", "b", "c"), func() error {
			if n++; n > asked {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || textOf(t, path) != before {
			t.Errorf("stopped when asked for the time %d: %v", asked+1, err)
		}
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
	path = writeFile(t, before)
	var w watched
	if moved, err := arrange(w.disk(), path, orderOf("a", "b", "c"), goOn); !moved || err != nil {
		t.Errorf("%t, %v", moved, err)
	}
	if want := []string{"sync " + after, "rename to out.jsonl", "sync folder of out.jsonl"}; !slices.Equal(w.did, want) {
		t.Errorf("got  %q\nwant %q", w.did, want)
	}
}

// A file whose end is not whole, or that is not there, is left alone.
func TestArrangeAtItsEdges(t *testing.T) {
	text := linesOf("b", "a")
	for _, end := range []int{1, 9} {
		path := writeFile(t, text[:len(text)-end])
		if _, err := Arrange(path, orderOf("a", "b"), goOn); !errors.Is(err, ErrChanged) || textOf(t, path) != text[:len(text)-end] {
			t.Errorf("%v", err)
		}
	}
	for _, path := range []string{writeFile(t, ""), filepath.Join(t.TempDir(), "none")} {
		if moved, err := Arrange(path, orderOf("a"), goOn); moved || err != nil {
			t.Errorf("%t, %v", moved, err)
		}
	}
}
