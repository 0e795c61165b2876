package command

import "testing"

// Calls have a file each, and 32 are left to the process: no call more, none less, and never
// no call at all.
func TestCallsWithinOpenFiles(t *testing.T) {
	for _, c := range []struct {
		limit       uint64
		asked, want int
	}{{0, 500, 500}, {96, 64, 64}, {95, 64, 63}, {97, 64, 64}, {80, 500, 48}, {33, 8, 1}, {32, 8, 1}, {3, 8, 1}, {33, 1, 1}} {
		if got := callsWithin(c.limit, c.asked); got != c.want {
			t.Errorf("of %d calls %d may be made where %d files may be open, want %d", c.asked, got, c.limit, c.want)
		}
	}
}
