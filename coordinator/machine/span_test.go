package machine

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

const endless = time.Duration(math.MaxInt64)

// A call that took a large part of all time makes no later one overdue at once, nor does it
// make a probe pass at once.
func TestEndlessLatencyIsLong(t *testing.T) {
	for _, signal := range []Signal{Succeeded, Throttled} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
		b.offer(1, "", 0)
		b.Step(b.now, Settled(b.calls[0], Outcome{Signal: signal, Latency: endless / 4, Detour: endless}))
		l := b.lanes[DefaultPool]
		if signal == Succeeded && (l.overdueAfter() == forever || l.overdueAfter() < 365*24*time.Hour) {
			t.Errorf("overdue after %v", l.overdueAfter())
		}
		if signal == Throttled && l.probeWait() < 365*24*time.Hour {
			t.Errorf("a probe passes after %v", l.probeWait())
		}
	}
}

// The backoff of a machine is validated as its lanes are.
func TestBackoffIsValidated(t *testing.T) {
	for name, c := range map[string]limiter.BackoffConfig{
		"base":   {Base: -1},
		"factor": {Factor: math.NaN()},
	} {
		if err := (Config{Backoff: c}).Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (Config{Backoff: limiter.BackoffConfig{Base: time.Second, Factor: 1}}).Validate(); err != nil {
		t.Error(err)
	}
}
