package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
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

// viewOf returns a law's beliefs for a call that draws one request and nothing else.
func viewOf(law limiter.Law, now time.Time) *limiter.View {
	v := law.View(now, limiter.Cost{Requests: 1})
	return &v
}
