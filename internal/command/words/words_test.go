package words

import (
	"strings"
	"testing"
	"time"
)

// One thing is singular.
func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls"} {
		if got := Count(n, "call"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// A length of time is shown in the unit that says most of it.
func TestWait(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 ms", 999 * time.Millisecond: "999 ms", time.Second: "1.0 s", 99 * time.Second: "99.0 s",
		100 * time.Second: "2 min", 99 * time.Minute: "99 min", 100 * time.Minute: "1.7 h", 20 * time.Hour: "20.0 h",
	} {
		if got := Wait(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// A number has commas at the thousands.
func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1_234_567: "1,234,567", -100: "-100", -1000: "-1,000"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// A length of time that is over is shown to the second.
func TestLasted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		500 * time.Millisecond: "500 ms", 28100 * time.Millisecond: "28.1 s", 157700 * time.Millisecond: "2 min 38 s",
		100 * time.Second: "1 min 40 s", time.Hour - time.Millisecond: "1 h 0 min 0 s", 88*time.Minute + 40*time.Second: "1 h 28 min 40 s", 200 * time.Hour: "200 h 0 min 0 s",
	} {
		if got := Lasted(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// A flag's value is as a user would write it.
func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0s", 0.001: "1ms", 2.3: "2.3s", 60: "1m", 90: "1m30s", 3600: "1h", 5400: "1h30m", 7261: "2h1m1s"} {
		if got := Span(seconds); got != want {
			t.Errorf("%v: %s, want %s", seconds, got, want)
		}
	}
}

// A clipped text has the length that was asked for, in characters.
func TestClip(t *testing.T) {
	for n, want := range map[int]string{3: "äö…", 4: "äöüß", 5: "äöüß"} {
		if got := Clip("äöüß", n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// Columns stand side by side, and no line ends in blanks.
func TestColumns(t *testing.T) {
	var out strings.Builder
	Columns(&out, 2, "A\tB\tC\nlong\t\t\nx\ty\tz\n")
	if want := "A     B  C\nlong\nx     y  z\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
