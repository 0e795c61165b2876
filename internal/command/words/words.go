// Package words shows counts, durations and sums of money in the form that all commands of
// headrace use.
//
// It promises that one thing is never in the plural, and that a sum of money is never rounded
// to zero. A duration has at most three digits and its unit.
//
//	1 ─▶ "1 call"    2 ─▶ "2 calls"    1.2 s ─▶ "1.2 s"    3 h ─▶ "3.0 h"    0.0412 ─▶ "$0.0412"
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count shows a number of things. The noun is singular, and its plural adds an s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OneOr returns the words for one thing, or those for several.
func OneOr(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// Number shows a whole number with commas at the thousands.
func Number(n int) string {
	return grouped(strconv.Itoa(n))
}

// grouped puts commas between the thousands of a whole number.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Wait shows a duration: milliseconds below a second, seconds up to 100 of them, minutes up
// to 100 of them, hours beyond. A negative duration shows as zero.
func Wait(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// Lasted shows a duration that is over, to the second once there are minutes: 2 min 38 s, 1
// h 28 min 40 s.
func Lasted(d time.Duration) string {
	if d < 100*time.Second {
		return Wait(d)
	}
	s := int(d.Round(time.Second).Seconds())
	text := fmt.Sprintf("%d min %d s", s/60%60, s%60)
	if s >= 3600 {
		text = fmt.Sprintf("%d h %s", s/3600, text)
	}
	return text
}

// Span formats seconds as a user would write them in a flag, without zeros: 5400 is 1h30m.
func Span(seconds float64) string {
	text := time.Duration(seconds * 1e9).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Clip shortens a text to n characters. The last of a text that was longer is an ellipsis.
func Clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
