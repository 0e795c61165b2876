package measure

import (
	"math"
	"testing"
)

// A saved number counts only within its bounds, both included.
func TestSane(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{1, 1}, {2, 2}, {3, 3}, {0.5, 0}, {3.5, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(1), 0}, {math.Inf(-1), 0},
	} {
		if got := Sane(c.x, 1, 3); got != c.want {
			t.Errorf("Sane(%v, 1, 3) = %v, want %v", c.x, got, c.want)
		}
	}
}
