package window

import (
	"testing"

	"github.com/headrace/headrace/limiter/internal/parttest"
)

// The time, the chance and the comparisons of the tests, by short names.
var (
	noon             = parttest.Noon
	at, seeded, near = parttest.At, parttest.Seeded, parttest.Near
)

func want[T comparable](t *testing.T, what string, got, expected T) {
	t.Helper()
	parttest.Want(t, what, got, expected)
}
