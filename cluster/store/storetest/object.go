package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/store"
)

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

func identity(t *testing.T, s store.Store) {
	put(t, s, "in", "line 1\nline 2\n")
	id, size, err := store.Identity(t.Context(), s, "in")
	if err != nil || id == "" || size != 14 {
		t.Fatal(id, size, err)
	}
	read := func(id string) (string, error) {
		in, err := store.OpenSame(t.Context(), s, "in", id, 7, 6)
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
	if again, _, err := store.Identity(t.Context(), s, "in"); err != nil || again != id {
		t.Errorf("it became %s, %v", again, err)
	}
	if err := s.Delete(t.Context(), "in"); err != nil {
		t.Fatal(err)
	}
	_, err = read(id)
	is(t, err, store.ErrMissing, "in")
	put(t, s, "in", "line 3\nline 2\n and more")
	if other, size, err := store.Identity(t.Context(), s, "in"); err != nil || other == id || size != 23 {
		t.Errorf("another object has the identity %s, %d bytes, %v", other, size, err)
	}
	_, err = read(id)
	is(t, err, store.ErrChanged, "in")
	_, _, err = store.Identity(t.Context(), s, "missing")
	is(t, err, store.ErrMissing, "missing")
}

func part(t *testing.T, s store.Store) {
	job := store.Sub(store.Sub(s, "jobs"), "j/k")
	put(t, job, "parts/7", "seven")
	put(t, s, "jobs/j/kk", "beside")
	if got := get(t, s, "jobs/j/k/parts/7"); got != "seven" {
		t.Errorf("it became %q", got)
	}
	put(t, s, "jobs/j/k/parts/8", "eight")
	same(t, "all", list(t, job, "", ""), []string{"parts/7", "parts/8"})
	same(t, "after", list(t, job, "p", "parts/7"), []string{"parts/8"})
	if id, _, err := store.Identity(t.Context(), job, "parts/8"); err != nil {
		t.Error(err)
	} else if in, err := store.OpenSame(t.Context(), job, "parts/8", id, 0, -1); err != nil {
		t.Error(err)
	} else {
		_ = in.Close()
	}
	if err := job.Delete(t.Context(), "parts/7"); err != nil {
		t.Error(err)
	}
	is(t, store.CreateBytes(t.Context(), job, "", nil), store.ErrName, "")
	is(t, store.CreateBytes(t.Context(), job, "../out", nil), store.ErrName, "")
	same(t, "what is left", list(t, s, "", ""), []string{"jobs/j/k/parts/8", "jobs/j/kk"})
	if store.Sub(s, "") != s {
		t.Error("no part is the whole")
	}
}

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
	_, _, identified := store.Identity(ctx, s, "k")
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

func mark(t *testing.T, s store.Store) {
	name, err := store.Mark(t.Context(), s, rand.New(rand.NewPCG(5, 6)))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CheckMark(t.Context(), s, name); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	is(t, store.CheckMark(t.Context(), s, name), store.ErrUnsafe, "cannot be read here")
	if err := store.CheckMark(t.Context(), s, "parts/1"); err == nil {
		t.Error("a part is taken for a mark")
	}
}
