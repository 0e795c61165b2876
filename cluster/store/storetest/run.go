package storetest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/headrace/headrace/cluster/store"
)

// Run tests a store. open returns an empty one for each test.
func Run(t *testing.T, open func(t testing.TB) store.Store) {
	for _, one := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"what is created is read", created},
		{"a name is taken once", taken},
		{"of many writers one wins", races},
		{"a body has the size that was told", sizes},
		{"a body that fails leaves nothing", failing},
		{"what is no name is refused", names},
		{"stretches", stretches},
		{"lists", lists},
		{"a list goes on behind a name", after},
		{"a list of more than a page", pages},
		{"lists that are left", left},
		{"deleted", deleted},
		{"an object of 20 MB", large},
		{"identity", identity},
		{"a context that is over", canceled},
		{"journals", journals},
		{"a journal without appending", piecewise},
		{"the probe", probe},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, open(t)) })
	}
}

func put(t testing.TB, s store.Store, name, content string) {
	t.Helper()
	if err := store.CreateBytes(t.Context(), s, name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s store.Store, name string) string {
	t.Helper()
	content, err := store.ReadAll(t.Context(), s, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// is fails unless an error is of a kind and contains a text.
func is(t testing.TB, err, kind error, says string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "store: ") {
		t.Errorf("%v is not %v of %q", err, kind, says)
	}
}

func list(t testing.TB, s store.Store, prefix, after string) []string {
	t.Helper()
	var names []string
	for o, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, o.Name)
	}
	return names
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// objects are permitted names; each object's content contains its name.
var objects = []string{
	"a", "a b", "a+b", "a%2Fb", "a&b=c?d#e", "b/c", "b/c.d/e", "ü/日本/🙂", "..x/..y", ".hidden", "<x>\"'`",
	"jobs/j/parts/7.r1", strings.Repeat("n", store.MaxSegment),
	strings.Repeat(strings.Repeat("m", 99)+"/", 6) + "end",
}

// created tests that objects of unusual names hold what was written, and that lists have them.
func created(t *testing.T, s store.Store) {
	for _, name := range objects {
		put(t, s, name, "content of "+name)
	}
	for _, name := range objects {
		if got := get(t, s, name); got != "content of "+name {
			t.Errorf("%q holds %q", name, got)
		}
	}
	put(t, s, "empty", "")
	if got := get(t, s, "empty"); got != "" {
		t.Errorf("an empty object holds %q", got)
	}
	_, err := s.Open(t.Context(), "none", 0, -1)
	is(t, err, store.ErrMissing, "none")
	_, err = s.Open(t.Context(), "b", 0, -1)
	is(t, err, store.ErrMissing, "b") // names are under it, and it is no object
	_, err = s.Open(t.Context(), "a/under", 0, -1)
	is(t, err, store.ErrMissing, "a/under")
	if _, err := store.ReadAll(t.Context(), s, "a", 3); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("more than was asked for: %v", err)
	}
	want := slices.Sorted(slices.Values(append(slices.Clone(objects), "empty")))
	same(t, "list", list(t, s, "", ""), want)
}

// taken tests that the first object of a name stays, and that a deletion makes the name free
// again.
func taken(t *testing.T, s store.Store) {
	put(t, s, "k", "first")
	for _, again := range []string{"first", "second", ""} {
		is(t, store.CreateBytes(t.Context(), s, "k", []byte(again)), store.ErrExists, "k")
	}
	if got := get(t, s, "k"); got != "first" {
		t.Errorf("what was first became %q", got)
	}
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", "after")
	if got := get(t, s, "k"); got != "after" {
		t.Errorf("after it was deleted it became %q", got)
	}
}

// races does what the probe does, in folders that nobody has made.
func races(t *testing.T, s store.Store) {
	const rounds, writers = 20, 16
	for round := range rounds {
		name := fmt.Sprintf("race/%d/of/%d", round, writers)
		errs := make(chan error)
		for w := range writers {
			go func() {
				errs <- s.Create(t.Context(), name, strings.NewReader(strings.Repeat(string(rune('a'+w)), 5000)), 5000)
			}()
		}
		won := 0
		for range writers {
			err := <-errs
			if err == nil {
				won++
			} else if !errors.Is(err, store.ErrExists) {
				t.Error(err)
			}
		}
		if got := get(t, s, name); won != 1 || len(got) != 5000 || strings.Trim(got, got[:1]) != "" {
			t.Fatalf("round %d: %d won, %d bytes are there", round, won, len(got))
		}
	}
}

// blind hides that a reader can seek.
type blind struct{ io.Reader }

// sizes tests that a body must have the announced size, whatever its reader does at its end.
func sizes(t *testing.T, s store.Store) {
	for _, c := range []struct{ has, declared int }{{0, 1}, {1, 0}, {10, 11}, {11, 10}, {70_000, 70_001}, {70_001, 70_000}, {2 << 20, 1 << 20}} {
		for _, body := range []io.Reader{
			strings.NewReader(strings.Repeat("x", c.has)),
			blind{strings.NewReader(strings.Repeat("x", c.has))},
			iotest.HalfReader(strings.NewReader(strings.Repeat("x", c.has))),
			iotest.DataErrReader(strings.NewReader(strings.Repeat("x", c.has))),
		} {
			name := fmt.Sprintf("%d-for-%d", c.has, c.declared)
			err := s.Create(t.Context(), name, body, int64(c.declared))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("than the %d bytes that were announced", c.declared)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	same(t, "what is left", list(t, s, "", ""), nil)
	for i, body := range []io.Reader{
		iotest.OneByteReader(strings.NewReader("exactly")), iotest.DataErrReader(strings.NewReader("exactly")),
		io.MultiReader(strings.NewReader("exact"), strings.NewReader("ly")),
	} {
		name := fmt.Sprint("ok", i)
		if err := s.Create(t.Context(), name, body, 7); err != nil || get(t, s, name) != "exactly" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A body that was partly read is sent from there on.
	body := strings.NewReader("read, and to be written")
	_, _ = body.Seek(6, io.SeekStart)
	if err := s.Create(t.Context(), "rest", body, 17); err != nil || get(t, s, "rest") != "and to be written" {
		t.Errorf("the rest of a body: %v", err)
	}
	if err := s.Create(t.Context(), "negative", strings.NewReader(""), -1); err == nil {
		t.Error("a negative size was taken")
	}
}

func failing(t *testing.T, s store.Store) {
	broken := errors.New("broken")
	body := io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), iotest.ErrReader(broken))
	for i, r := range []io.Reader{body, blind{iotest.ErrReader(broken)}} {
		err := s.Create(t.Context(), fmt.Sprint("f", i), r, 200_000)
		is(t, err, broken, "body")
	}
	same(t, "what is left", list(t, s, "", ""), nil)
}
