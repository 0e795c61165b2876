//go:build !race

package race

// Enabled reports whether the race detector is on.
const Enabled = false

// Fewer returns a tenth of n, at least 1, under the race detector, and n without it.
func Fewer(n int) int { return n }
