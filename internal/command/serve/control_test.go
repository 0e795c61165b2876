package serve

import (
	"strings"
	"testing"
)

// headrace ctl raises the concurrency as far as files may be open, and no further: calls beyond would fail.
func TestConcurrencyFitsOpenFiles(t *testing.T) {
	for _, c := range []struct {
		calls int
		files uint64
		want  string
	}{{200, 256, ""}, {1000, 256, "at most 256 files may be open: want 1 to 224"}, {65_536, 0, ""}} {
		if err := checkConcurrency(c.calls, c.files); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d calls with %d files: %v, want %q", c.calls, c.files, err, c.want)
		}
	}
}
