package storetest

import (
	"errors"
	"io"
	"testing"

	"github.com/headrace/headrace/cluster/store"
)

// A flaky store does, or does not, what it says nothing of.
func TestFlaky(t *testing.T) {
	m := NewMemory()
	fault := None
	s := &Flaky{Store: m, Rule: func(int, string, string) Fault { return fault }}
	put(t, s, "a", "1234")
	for _, c := range []struct {
		fault      Fault
		b, listed  int
		read, left string
	}{{Refuse, 0, 0, "", "a"}, {LoseReply, 1, 1, "12", "b"}} {
		fault = c.fault
		errs := []error{store.CreateBytes(t.Context(), s, "b", nil)}
		if got := len(list(t, m, "b", "")); got != c.b {
			t.Errorf("%d: %d were created", c.fault, got)
		}
		listed := 0
		for _, err := range s.List(t.Context(), "", "") {
			if err != nil {
				errs = append(errs, err)
				break
			}
			listed++
		}
		var content []byte
		in, err := s.Open(t.Context(), "a", 0, -1)
		if err == nil {
			content, err = io.ReadAll(in)
		}
		errs = append(errs, err, s.Delete(t.Context(), "a"))
		for i, err := range errs {
			if !errors.Is(err, ErrFlaky) {
				t.Errorf("%d: %d: %v", c.fault, i, err)
			}
		}
		if left := list(t, m, "", ""); listed != c.listed || string(content) != c.read || len(left) == 0 || left[0] != c.left || len(errs) != 4 {
			t.Errorf("%d: %d listed, %q read, %q left", c.fault, listed, content, left)
		}
	}
}
