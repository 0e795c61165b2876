package claim

import (
	"slices"
	"testing"
)

// Names stand in the order of their claims, where they are listed as text too.
func TestNamesInOrder(t *testing.T) {
	in := []Name{{1, "a", 2}, {1, "a", 10}, {1, "b", 1}, {2, "a", 1}, {10, "a", 1}, {9999, "a", 1}}
	for i, n := range in {
		if got, ok := ParseName(n.String()); !ok || got != n {
			t.Errorf("%v is read as %v, %v", n, got, ok)
		}
		for j, o := range in {
			if got := n.Compare(o); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v beside %v: %d", n, o, got)
			}
		}
	}
	turns := []string{Name{1, "b", 1}.String(), Name{2, "a", 1}.String(), Name{10, "a", 1}.String()}
	if !slices.IsSorted(turns) {
		t.Errorf("as text they are not in order: %v", turns)
	}
}

// What no claim has written is no name.
func TestNoNames(t *testing.T) {
	for _, s := range []string{
		"", "0001", "0001-", "0001-a", "0001-.1", "0001-a.", "0001-a.x", "0000-a.1", "1-a.1", "00001-a.1", "-001-a.1", "0001-a.01",
		"0001-a.-1", "0001-a.18446744073709551616", "99999999999999999999-a.1", "x-a.1",
	} {
		if n, ok := ParseName(s); ok {
			t.Errorf("%q is taken for %v", s, n)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("0001-w-3.x.7")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := ParseName(s); ok && (n.String() != s || n.Turn < 1 || n.Who == "") {
			t.Errorf("%q is read as %#v", s, n)
		}
	})
}

// A chunk says what it is, as its part is called.
func TestChunkSays(t *testing.T) {
	if got := (Chunk{"j", 7, 0}).String() + " " + (Chunk{"j", 7, 2}).String(); got != "j/7 j/7.r2" {
		t.Error(got)
	}
}
