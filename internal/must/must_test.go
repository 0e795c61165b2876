package must

import (
	"errors"
	"slices"
	"testing"
)

// stopped is a test that writes down what ended it.
type stopped struct {
	testing.TB
	by []any
}

func (s *stopped) Helper()        {}
func (s *stopped) Fatal(x ...any) { s.by = x }

// An error ends the test, and no error leaves it alone.
func TestDoAndGet(t *testing.T) {
	bad := errors.New("bad")
	for _, err := range []error{nil, bad} {
		var done, got stopped
		Do(&done, err)
		v := Get(7, err)(&got)
		if ended := slices.Equal(done.by, []any{err}) && slices.Equal(got.by, []any{err}); v != 7 || ended != (err != nil) {
			t.Errorf("%v: ended by %v and %v", err, done.by, got.by)
		}
	}
}
