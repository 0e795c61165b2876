package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/store"
)

// deleted tests that Delete removes one object alone, and that a missing one is no error.
func deleted(t *testing.T, s store.Store) {
	all := plant(t, s)
	for range 2 {
		if err := s.Delete(t.Context(), "a/b/c"); err != nil {
			t.Fatal(err)
		}
	}
	for _, missing := range []string{"never", "a", "a/b", "a/b.c/under", "deep/down/below"} {
		if err := s.Delete(t.Context(), missing); err != nil {
			t.Errorf("%s: %v", missing, err)
		}
	}
	_, err := s.Open(t.Context(), "a/b/c", 0, -1)
	is(t, err, store.ErrMissing, "a/b/c")
	same(t, "what is left", list(t, s, "", ""), slices.DeleteFunc(all, func(n string) bool { return n == "a/b/c" }))
}

// large tests an object of more than [store.BufferedBody] bytes, from a body that can seek and from
// one that cannot.
func large(t *testing.T, s store.Store) {
	content := make([]byte, 20<<20)
	chance := rand.NewChaCha8([32]byte{1})
	_, _ = chance.Read(content)
	if err := s.Create(t.Context(), "sought", bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "streamed", blind{bytes.NewReader(content)}, int64(len(content))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sought", "streamed"} {
		got, err := store.ReadAll(t.Context(), s, name, int64(len(content)))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	in, err := s.Open(t.Context(), "sought", 12<<20, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, content[12<<20:13<<20]) {
		t.Errorf("a stretch: %d bytes, %v", len(got), err)
	}
}

// identity tests that each state of an object has its own identity, and that OpenSame reads no
// other state.
func identity(t *testing.T, s store.Store) {
	put(t, s, "in", "line 1\nline 2\n")
	id, size, err := s.Identity(t.Context(), "in")
	if err != nil || id == "" || size != 14 {
		t.Fatal(id, size, err)
	}
	read := func(id string) (string, error) {
		in, err := s.OpenSame(t.Context(), "in", id, 7, 6)
		if err != nil {
			return "", err
		}
		defer func() { _ = in.Close() }()
		content, err := io.ReadAll(in)
		return string(content), err
	}
	if got, err := read(id); err != nil || got != "line 2" {
		t.Errorf("%q, %v", got, err)
	}
	if again, _, err := s.Identity(t.Context(), "in"); err != nil || again != id {
		t.Errorf("it became %s, %v", again, err)
	}
	if err := s.Delete(t.Context(), "in"); err != nil {
		t.Fatal(err)
	}
	_, err = read(id)
	is(t, err, store.ErrMissing, "in")
	put(t, s, "in", "line 3\nline 2\n and more")
	if other, size, err := s.Identity(t.Context(), "in"); err != nil || other == id || size != 23 {
		t.Errorf("another object has the identity %s, %d bytes, %v", other, size, err)
	}
	_, err = read(id)
	is(t, err, store.ErrChanged, "in")
	_, _, err = s.Identity(t.Context(), "missing")
	is(t, err, store.ErrMissing, "missing")
}

// canceled tests that after the end of a context its reader ends, and methods do nothing.
func canceled(t *testing.T, s store.Store) {
	put(t, s, "k", strings.Repeat("x", 1<<20))
	put(t, s, "l", "")
	ctx, cancel := context.WithCancel(t.Context())
	in, err := s.Open(ctx, "k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(s.List(ctx, "", ""))
	defer stop()
	_, _, _ = next()
	cancel()
	if _, err := io.ReadAll(in); !errors.Is(err, context.Canceled) {
		t.Errorf("it is read on: %v", err)
	}
	_ = in.Close()
	_, opened := s.Open(ctx, "k", 0, -1)
	_, _, identified := s.Identity(ctx, "k")
	var listed error
	for _, err := range s.List(ctx, "", "") {
		listed = err
	}
	for i, err := range []error{
		opened, identified, listed, store.CreateBytes(ctx, s, "m", nil), s.Delete(ctx, "l"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d: %v", i, err)
		}
	}
	same(t, "what is there", list(t, s, "", ""), []string{"k", "l"})
}

func probe(t *testing.T, s store.Store) {
	if err := store.Probe(t.Context(), s, rand.New(rand.NewPCG(3, 4)), store.ProbeConfig{}); err != nil {
		t.Error(err)
	}
	same(t, "what is left", list(t, s, "", ""), nil)
}

// names tests that methods refuse names that no object can have, and that lists refuse beginnings
// that no name can have.
func names(t *testing.T, s store.Store) {
	for _, name := range []string{
		"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/..", "a\x00b", "a\nb", "\xff",
		".headrace-tmp", "a/.headrace-tmp/x", ".nfs0001", strings.Repeat("n", store.MaxSegment+1),
		strings.Repeat("n/", store.MaxName/2) + "n",
	} {
		is(t, store.CreateBytes(t.Context(), s, name, nil), store.ErrName, "create")
		_, err := s.Open(t.Context(), name, 0, -1)
		is(t, err, store.ErrName, "open")
		is(t, s.Delete(t.Context(), name), store.ErrName, "delete")
		_, _, err = s.Identity(t.Context(), name)
		is(t, err, store.ErrName, "identity")
	}
	for _, prefix := range []string{"/", "../", "a/../", "a//"} {
		for _, err := range s.List(t.Context(), prefix, "") {
			is(t, err, store.ErrName, "list")
		}
	}
	same(t, "what is left", list(t, s, "", ""), nil)
}

// stretches tests reading from all kinds of offsets, in all kinds of lengths.
func stretches(t *testing.T, s store.Store) {
	put(t, s, "ten", "0123456789")
	put(t, s, "none", "")
	for _, c := range []struct {
		name           string
		offset, length int64
		want           string
	}{
		{"ten", 0, -1, "0123456789"},
		{"ten", 3, -1, "3456789"},
		{"ten", 3, 4, "3456"},
		{"ten", 0, 1, "0"},
		{"ten", 9, 1, "9"},
		{"ten", 9, 100, "9"},
		{"ten", 0, 0, ""},
		{"ten", 5, 0, ""},
		{"ten", 10, -1, ""},
		{"ten", 11, -1, ""},
		{"ten", 11, 5, ""},
		{"ten", 1, 1<<63 - 1, "123456789"},
		{"none", 0, -1, ""},
		{"none", 0, 10, ""},
		{"none", 5, -1, ""},
	} {
		in, err := s.Open(t.Context(), c.name, c.offset, c.length)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		got, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil || string(got) != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	if _, err := s.Open(t.Context(), "ten", -1, 1); err == nil {
		t.Error("a negative offset was taken")
	}
	_, err := s.Open(t.Context(), "missing", 5, 0)
	is(t, err, store.ErrMissing, "missing")
}

// tree is in the byte order of the names, in which a slash is one of the bytes.
var tree = []string{"a!", "a-b", "a-b/c", "a.b/c", "a/b", "a/b.c", "a/b/c", "a0", "a/c", "ab", "b", "é", "日"}

// plant makes the objects of tree that can all be there together, in a mixed order. It returns
// their names, sorted.
func plant(t testing.TB, s store.Store) []string {
	var sorted []string
	for _, name := range rand.New(rand.NewPCG(1, 2)).Perm(len(tree)) {
		// A name and its beginning up to a slash cannot both be there.
		if tree[name] != "a-b" && tree[name] != "a/b" {
			put(t, s, tree[name], tree[name])
			sorted = append(sorted, tree[name])
		}
	}
	slices.Sort(sorted)
	return sorted
}

// lists tests that a list has all objects under a prefix, in byte order, with their sizes.
func lists(t *testing.T, s store.Store) {
	same(t, "nothing", list(t, s, "", ""), nil)
	all := plant(t, s)
	same(t, "all", list(t, s, "", ""), all)
	for _, prefix := range []string{"a", "a/", "a/b", "a/b/", "a/b/c", "a-", "a-b/c", "a.", "é", "z", "a/b/c/d", ".", "zz/"} {
		var want []string
		for _, name := range all {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		same(t, prefix, list(t, s, prefix, ""), want)
	}
	for o, err := range s.List(t.Context(), "", "") {
		if err != nil || o.Size != int64(len(o.Name)) {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// after tests that a list begins behind a name, whether or not an object has that name.
func after(t *testing.T, s store.Store) {
	all := plant(t, s)
	for _, from := range append(slices.Clone(all), "a", "a/", "a/b", "a/a", "a/zzz", "a-b", "A", "~", "zzz") {
		for _, prefix := range []string{"", "a", "a/"} {
			var want []string
			for _, name := range all {
				if strings.HasPrefix(name, prefix) && name > from {
					want = append(want, name)
				}
			}
			same(t, prefix+" after "+from, list(t, s, prefix, from), want)
		}
	}
}

// pages lists more than the thousand objects that S3 lists at once.
func pages(t *testing.T, s store.Store) {
	const objects, at = 2100, 32
	names := make(chan string)
	errs := make(chan error)
	for range at {
		go func() {
			for name := range names {
				errs <- store.CreateBytes(t.Context(), s, name, nil)
			}
		}()
	}
	go func() {
		defer close(names)
		for n := range objects {
			names <- fmt.Sprintf("parts/%06d", n)
		}
	}()
	for range objects {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	got := list(t, s, "parts/", "")
	if len(got) != objects || !slices.IsSorted(got) || got[objects-1] != "parts/002099" {
		t.Errorf("%d of %d, in order: %t", len(got), objects, slices.IsSorted(got))
	}
	if got := list(t, s, "parts/", "parts/000999"); len(got) != objects-1000 || got[0] != "parts/001000" {
		t.Errorf("%d behind the first thousand, from %s on", len(got), got[0])
	}
}

// left tests that a list can be left early.
func left(t *testing.T, s store.Store) {
	all := plant(t, s)
	for _, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Error(err)
		}
		break
	}
	next, stop := iter.Pull2(s.List(t.Context(), "", ""))
	if o, err, ok := next(); !ok || err != nil || o.Name != all[0] {
		t.Errorf("%+v, %v, %t", o, err, ok)
	}
	stop()
}
