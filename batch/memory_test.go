package batch

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/limiter"
)

// A faucet is a server with a limit of which it says nothing.
type faucet struct {
	mu                        sync.Mutex
	perSecond, depth, level   float64
	last                      time.Time
	calls, refused, inSeconds int // inSeconds: calls of the first ten seconds
	began                     time.Time
}

func (f *faucet) call(ctx context.Context, i int) (int, error) {
	if f.take() {
		return i, pause(ctx, time.Second)
	}
	_ = pause(ctx, 50*time.Millisecond)
	return 0, RetryAfter(0, errors.New("too many"))
}

func (f *faucet) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.last.IsZero() {
		f.last = now
	}
	f.level, f.last = min(f.depth, f.level+f.perSecond*now.Sub(f.last).Seconds()), now
	f.calls++
	if now.Sub(f.began) <= 10*time.Second {
		f.inSeconds++
	}
	if f.level < 1 {
		f.refused++
		return false
	}
	f.level--
	return true
}

// runAgainst runs items against the faucet, on a coordinator that starts with a memory, and
// gives what was learned, as a file would hold it.
func runAgainst(t *testing.T, f *faucet, items int, m Memory, opts ...Option) Memory {
	t.Helper()
	shared, err := NewShared(append(opts, WithMemory(m))...)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	f.began, f.calls, f.refused, f.inSeconds = time.Now(), 0, 0, 0
	if _, err := Run(t.Context(), numbers(items), f.call, WithShared(shared)); err != nil {
		t.Fatal(err)
	}
	saved, err := shared.Save(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	var read Memory
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// A run that begins with what an earlier one has learned of a silent limit is at its rate
// at once, and meets no wave of refusals.
func TestRestoredRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faucet{perSecond: 10, depth: 15}
		learned := runAgainst(t, f, 2000, Memory{})
		anew := f.refused
		time.Sleep(time.Minute)
		runAgainst(t, f, 200, learned)
		if f.inSeconds < 90 || f.inSeconds > 130 || f.refused > anew/2 {
			t.Errorf("%d calls in the first ten seconds, %d of %d refused; of those that learned %d", f.inSeconds, f.refused, f.calls, anew)
		}
		time.Sleep(time.Minute)
		forgot := &faucet{perSecond: 10, depth: 15, level: 15}
		runAgainst(t, forgot, 200, Memory{})
		if f.refused >= forgot.refused {
			t.Errorf("%d refused, and %d of a run that knew nothing", f.refused, forgot.refused)
		}
	})
}

// Settings given now win over the memory.
func TestToldWinsOverMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faucet{perSecond: 10, depth: 15}
		learned := runAgainst(t, f, 500, Memory{})
		runAgainst(t, f, 30, learned, WithLimits(limiter.Limits{RPM: 60}))
		if f.inSeconds > 12 {
			t.Errorf("%d calls in the first ten seconds of one a second", f.inSeconds)
		}
	})
}

// A lane that cools when it is saved cools on.
func TestMemoryKeepsHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := NewControl()
		var memory Memory
		fn := func(ctx context.Context, i int) (int, error) { return 0, RetryAfter(time.Minute, errors.New("wait")) }
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(20 * time.Second)
			memory, _ = ctl.Save(ctx)
			stop()
		}()
		_, _ = Run(ctx, numbers(3), fn, WithControl(ctl))
		began := time.Now()
		var first time.Duration
		_, err := Run(t.Context(), numbers(1), func(ctx context.Context, i int) (int, error) {
			first = time.Since(began)
			return i, nil
		}, WithMemory(memory))
		if err != nil || first < 39*time.Second || first > 45*time.Second {
			t.Errorf("the first call left after %v, and 40 s were left of the wait: %v", first, err)
		}
	})
}

// A memory of a later headrace is reported. A run on the coordinator of a Shared takes
// none.
func TestMemoryIsChecked(t *testing.T) {
	newer := Memory{Lanes: map[string]LaneMemory{"a": {Version: 99}}}
	if _, err := NewShared(WithMemory(newer)); !errors.Is(err, ErrConfig) {
		t.Errorf("newer: %v", err)
	}
	shared, err := NewShared()
	if err != nil {
		t.Fatal(err)
	}
	good := runAgainst(t, &faucet{perSecond: 1e6, depth: 1e6, level: 1e6}, 1, Memory{})
	if _, err := Run(t.Context(), numbers(1), double, WithShared(shared), WithMemory(good)); !errors.Is(err, ErrConfig) {
		t.Errorf("with shared: %v", err)
	}
	shared.Close()
	if _, err := shared.Save(t.Context()); !errors.Is(err, coordinator.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
