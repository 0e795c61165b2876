package exit

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"syscall"
	"testing"
)

// A command is no success if a text of it has not arrived.
func TestTold(t *testing.T) {
	full, gone := errors.New("no space left"), &Ending{Code: Pipe}
	for name, c := range map[string]struct {
		of, ending error
		want       error
	}{
		"all arrived":          {nil, nil, nil},
		"a full disk":          {full, nil, &Ending{Code: Output, Text: "standard output could not be written: no space left"}},
		"a full disk, cobra's": {full, full, &Ending{Code: Output, Text: "standard output could not be written: no space left"}},
		"a reader has gone":    {fmt.Errorf("write: %w", syscall.EPIPE), nil, gone},
		"items have failed":    {full, &Ending{Code: ItemsFailed}, &Ending{Code: ItemsFailed}},
		"a fault of its own":   {nil, full, full},
	} {
		out := &Told{Out: failing{c.of}}
		_, _ = io.WriteString(out, "first")
		out.Out = failing{}
		if n, err := io.WriteString(out, "then"); n != 4 || err != nil || out.Broken() != (c.of != nil) {
			t.Errorf("%s: %d bytes, %v, broken %v", name, n, err, out.Broken())
		}
		if got := out.End(c.ending); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %#v, want %#v", name, got, c.want)
		}
	}
}

// A failing writer fails with its error, if it has one.
type failing struct{ err error }

func (f failing) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return len(p), nil
}
