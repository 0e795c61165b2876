package plain

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

var noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// at is the instant so many seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * 1e9)) }

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func want[T comparable](t *testing.T, what string, got, expected T) {
	t.Helper()
	if got != expected {
		t.Errorf("%s: got %v, want %v", what, got, expected)
	}
}

func near(t *testing.T, what string, got, expected, within float64) {
	t.Helper()
	if !(got >= expected-within && got <= expected+within) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, expected, within)
	}
}

// viewOf returns a law's beliefs for a call that draws one request and nothing else.
func viewOf(law limiter.Law, now time.Time) *limiter.View {
	v := law.View(now, limiter.Cost{Requests: 1})
	return &v
}
