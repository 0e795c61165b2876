package sim

import (
	"runtime"
	"testing"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// blocked waits until so many timers are armed on the clock.
func blocked(t *testing.T, clock *clockwork.FakeClock, timers int) {
	t.Helper()
	if err := clock.BlockUntilContext(t.Context(), timers); err != nil {
		t.Fatal(err)
	}
}

// received waits until the server has decided on a call.
func received(t *testing.T, s *Server) {
	t.Helper()
	for s.Books().Received == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
}
