//go:build race

package race

// Enabled reports whether the race detector is on.
const Enabled = true

// Fewer returns a tenth of n, at least 1, under the race detector, and n without it.
func Fewer(n int) int { return max(1, n/10) }
