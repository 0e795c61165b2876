package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
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
	shared := must.Get(NewShared(append(opts, WithMemory(m))...))(t)
	defer shared.Close()
	f.began, f.calls, f.refused, f.inSeconds = time.Now(), 0, 0, 0
	must.Get(Run(t.Context(), numbers(items), f.call, WithShared(shared)))(t)
	saved := must.Get(shared.Save(t.Context()))(t)
	text := must.Get(json.Marshal(saved))(t)
	var read Memory
	must.Do(t, json.Unmarshal(text, &read))
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
func TestConfiguredWinsOverMemory(t *testing.T) {
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
	shared := must.Get(NewShared())(t)
	good := runAgainst(t, &faucet{perSecond: 1e6, depth: 1e6, level: 1e6}, 1, Memory{})
	if _, err := Run(t.Context(), numbers(1), double, WithShared(shared), WithMemory(good)); !errors.Is(err, ErrConfig) {
		t.Errorf("with shared: %v", err)
	}
	shared.Close()
	if _, err := shared.Save(t.Context()); !errors.Is(err, coordinator.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A shelf is where a test's runs save what they learn: as text, like a file.
type shelf struct {
	text  []byte
	times []time.Time
}

func (s *shelf) save(m Memory) (err error) {
	s.times = append(s.times, time.Now())
	s.text, err = json.Marshal(m)
	return err
}

// read returns the memory that was saved last.
func (s *shelf) read(t *testing.T) Memory {
	t.Helper()
	var m Memory
	if len(s.text) == 0 {
		t.Fatal("nothing was saved")
	}
	must.Do(t, json.Unmarshal(s.text, &m))
	return m
}

// killed runs items for so long, and gives what was saved by then: what the next process
// finds if this one is killed. What is saved at the gentle end does not count.
func killed(t *testing.T, after time.Duration, fn Func[int, int], opts ...Option) Memory {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	found, began := new(shelf), time.Now()
	opts = append(opts, WithMemorySaver(func(m Memory) error {
		if time.Since(began) >= after {
			return nil
		}
		return found.save(m)
	}))
	time.AfterFunc(after, kill)
	if _, err := Run(ctx, numbers(100_000), fn, opts...); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return found.read(t)
}

// until counts the calls up to a moment.
func (j *journal) until(end time.Time) (calls int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, at := range j.times {
		if !at.After(end) {
			calls++
		}
	}
	return calls
}

// laws are the options that choose one.
var laws = map[string][]Option{"plain": {WithPlainLaw()}, "model": nil}

// One second into a wait of thirty a process is killed, and the next waits the other 29.
func TestDirectedWaitOutlivesKill(t *testing.T) {
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refuse := func(context.Context, int) (int, error) { return 0, RetryAfter(30*time.Second, errors.New("wait")) }
				m := killed(t, time.Second, refuse, law...)
				began := time.Now()
				var log journal
				_, err := Run(t.Context(), numbers(3), func(_ context.Context, i int) (int, error) { log.add(""); return i, nil }, append(law, WithMemory(m))...)
				if first := log.times[0].Sub(began); err != nil || first < 29*time.Second || first > 32*time.Second {
					t.Errorf("the first call left after %v, and 29 s were left of the wait: %v", first, err)
				}
			})
		})
	}
}

// A process that is killed in mid-ramp goes on where the ramp would be, the time between
// included; one that is begun after its end is at full speed.
func TestRampOutlivesKill(t *testing.T) {
	for name, c := range map[string]struct {
		down        time.Duration
		least, most int // calls in the first ten seconds
	}{
		"in mid-ramp":        {30 * time.Second, 60, 72}, // from 6 to 7 a second
		"after the ramp end": {time.Hour, 1000, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ramp := []Option{WithRamp(1, 11, 100*time.Second), WithConcurrency(1000)}
				var log journal
				fn := func(ctx context.Context, i int) (int, error) {
					if log.add("") == 1 {
						return 0, RetryAfter(time.Second, errors.New("wait"))
					}
					return i, pause(ctx, 100*time.Millisecond)
				}
				m := killed(t, 21*time.Second, fn, ramp...) // about 20 s into the ramp
				time.Sleep(c.down)
				var next journal
				began := time.Now()
				_, err := Run(t.Context(), numbers(1000), func(_ context.Context, i int) (int, error) { next.add(""); return i, nil }, append(ramp, WithMemory(m))...)
				calls := next.until(began.Add(10 * time.Second))
				if err != nil || calls < c.least || calls > c.most {
					t.Errorf("%d calls in ten seconds, want %d to %d: %v", calls, c.least, c.most, err)
				}
			})
		})
	}
}

// A server that was down when a process was killed is asked with one call by the next,
// and not before the breaker would have asked.
func TestOpenBreakerOutlivesKill(t *testing.T) {
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken := func(ctx context.Context, _ int) (int, error) {
					_ = pause(ctx, 50*time.Millisecond)
					return 0, errors.New("down")
				}
				m := killed(t, 30*time.Second, broken, law...)
				if k := m.Lanes[machine.DefaultPool]; k.Breaker.State == limiter.Closed.String() {
					t.Fatalf("%+v", k.Breaker)
				}
				var next journal
				began := time.Now()
				_, _ = Run(t.Context(), numbers(100), func(ctx context.Context, i int) (int, error) {
					next.add("")
					return i, pause(ctx, time.Second)
				}, append(law, WithMemory(m))...)
				if calls := next.until(began.Add(900 * time.Millisecond)); calls > 1 {
					t.Errorf("%d calls left at once to a server that was down", calls)
				}
			})
		})
	}
}

// What was learned of a silent limit is saved at the end, and known to the next process.
func TestLearnedLimitOutlivesProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, kept := &faucet{perSecond: 10, depth: 15}, new(shelf)
		var sum Summary
		if _, err := Run(t.Context(), numbers(2000), f.call, WithMemorySaver(kept.save), WithSummary(&sum)); err != nil || sum.SaveErr != nil {
			t.Fatal(err, sum.SaveErr)
		}
		m := kept.read(t)
		if got := m.Lanes[machine.DefaultPool].Law; len(got.Limits) == 0 || math.Abs(got.Limits[0].Refill-10) > 4 {
			// One in thirty is saved while a guess a quarter too high is being tried.
			t.Fatalf("%+v", got)
		}
		anew := f.refused
		time.Sleep(time.Minute)
		f.began, f.calls, f.refused, f.inSeconds = time.Now(), 0, 0, 0
		if _, err := Run(t.Context(), numbers(200), f.call, WithMemory(m)); err != nil || f.inSeconds < 90 || f.refused > anew/2 {
			t.Errorf("%d calls in ten seconds, %d refused, of those that learned %d: %v", f.inSeconds, f.refused, anew, err)
		}
	})
}

// A lane that changes its phase all the time is saved a few times a second and no more,
// one that never does is every few seconds, and one of which nothing is known never.
func TestHowOftenIsSaved(t *testing.T) {
	flapping := func(context.Context, int) (int, error) { return 0, RetryAfter(10*time.Millisecond, errors.New("wait")) }
	for name, c := range map[string]struct {
		fn          Func[int, int]
		items       int
		law         Option
		least, most int // saves in ten seconds, the last included
	}{
		"flapping": {flapping, 1000, WithLaneDefaults(machine.LaneConfig{
			Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Base: time.Millisecond, Max: 10 * time.Millisecond, Jitter: -1},
		}), 20, 42},
		"steady":       {takes(time.Second), 640, WithPlainLaw(), 2, 2},
		"nothing done": {never(t), 0, WithPlainLaw(), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept, drain := new(shelf), make(chan struct{})
				timer := time.AfterFunc(10*time.Second, func() { close(drain) })
				defer timer.Stop()
				_, _ = Run(t.Context(), numbers(c.items), c.fn, c.law, WithMemorySaver(kept.save), WithDrain(drain))
				if n := len(kept.times); n < c.least || n > c.most {
					t.Errorf("saved %d times, want %d to %d", n, c.least, c.most)
				}
				for i := 1; i < len(kept.times)-1; i++ { // the last does not wait
					if gap := kept.times[i].Sub(kept.times[i-1]); gap < SaveGap {
						t.Errorf("save %d came %v after the one before", i, gap)
					}
				}
			})
		})
	}
}

// A save that hangs for minutes, fails, panics or never returns slows no call, and is not
// an error of the run. The end of the run reports the latest save.
func TestSaveThatGoesWrong(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		save func(n int) error // the nth
		want func(error) bool
		ends time.Duration // when the run ends: calls take ten seconds
		n    int           // how often it is called; 0: it does not matter
	}{
		"slow":          {func(int) error { time.Sleep(time.Minute); return nil }, func(err error) bool { return err == nil }, 2*time.Minute + 5*time.Second, 2},
		"failing":       {func(int) error { return full }, func(err error) bool { return errors.Is(err, full) }, 10 * time.Second, 0},
		"failing once":  {func(n int) error { return []error{full, nil, nil, nil}[n] }, func(err error) bool { return err == nil }, 10 * time.Second, 0},
		"panicking":     {func(int) error { panic("no shelf") }, isPanic, 10 * time.Second, 1},
		"never returns": {func(int) error { runtime.Goexit(); return nil }, func(err error) bool { return errors.Is(err, errGone) }, 10 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, n := time.Now(), 0
				save := func(Memory) error { n++; return c.save(n - 1) }
				_, sum, err := proved(t.Context(), t, numbers(640), takes(time.Second), WithMemorySaver(save))
				if err != nil || sum.Succeeded != 640 || sum.Elapsed != 10*time.Second || !c.want(sum.SaveErr) {
					t.Errorf("%v, %d succeeded in %v, saved: %v", err, sum.Succeeded, sum.Elapsed, sum.SaveErr)
				}
				if ended := time.Since(began); ended != c.ends || c.n > 0 && n != c.n {
					t.Errorf("ended after %v and %d saves", ended, n)
				}
			})
		})
	}
}

func isPanic(err error) bool {
	var p *PanicError
	return errors.As(err, &p) && p.Value == "no shelf" && strings.Contains(string(p.Stack), "memory_test.go")
}

// A Shared saves for all its runs, to its end; a run on it does not.
func TestSharedSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := new(shelf)
		shared := must.Get(NewShared(WithMemorySaver(kept.save)))(t)
		if _, err := Run(t.Context(), numbers(1), double, WithShared(shared), WithMemorySaver(kept.save)); !errors.Is(err, ErrConfig) {
			t.Errorf("on a Shared: %v", err)
		}
		for _, lane := range []string{"a", "b"} {
			must.Get(Run(t.Context(), numbers(10), double, WithShared(shared), WithPoolOf(func(int) string { return lane })))(t)
		}
		if err := shared.SaveErr(); err != nil || len(kept.read(t).Lanes) != 2 {
			t.Errorf("%v, %s", err, kept.text)
		}
		bad := must.Get(NewShared(WithMemorySaver(func(Memory) error { return errors.New("no") })))(t)
		if _, err := Run(t.Context(), numbers(1), double, WithShared(bad)); err != nil || bad.SaveErr() == nil {
			t.Errorf("%v, %v", err, bad.SaveErr())
		}
		if _, err := NewShared(WithMemorySaver(nil)); !errors.Is(err, ErrConfig) {
			t.Errorf("nil: %v", err)
		}
	})
}

// Who leaves the loop has what was learned saved all the same.
func TestLeavingSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := new(shelf)
		for range Stream(t.Context(), numbers(100), double, WithMemorySaver(kept.save)) {
			break
		}
		if len(kept.read(t).Lanes) != 1 {
			t.Errorf("%s", kept.text)
		}
	})
}

// tenant serves a lane that many runs share, and refuses for good on a run's own.
func tenant(ctx context.Context, in hinted) (string, error) {
	if err := pause(ctx, 10*time.Second); err != nil {
		return "", err
	}
	if in.pool != "shared" {
		return "", &provider.Error{Kind: provider.QuotaExhausted, Code: "insufficient_quota"}
	}
	return in.pool, nil
}

// heapInUse returns the bytes reachable now.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A Shared that serves runs for ever is no larger after 10,000 of them than after 2,000,
// though each has a lane of its own that stops: 8,000 runs leave less than 64 bytes each.
func TestSharedDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(NewShared(WithPlainLaw()))(t)
		defer shared.Close()
		var after2000 uint64
		for i := range 10_000 {
			if i == 2000 {
				after2000 = heapInUse()
			}
			items := func(yield func(hinted) bool) {
				_ = yield(hinted{pool: fmt.Sprintf("tenant-%d", i)}) && yield(hinted{pool: "shared"})
			}
			if _, err := Run(t.Context(), items, tenant, WithShared(shared), WithConcurrency(2), WithReadAhead(2)); err == nil {
				t.Fatal("no lane has stopped")
			}
		}
		grown := int64(heapInUse()) - int64(after2000)
		if s, err := shared.Status(t.Context(), math.MaxInt); err != nil || s.Known > 100 {
			t.Errorf("%d lanes are known, and 91 were used within a quarter of an hour: %v", s.Known, err)
		}
		if t.Logf("grown by %d bytes", grown); grown > 512<<10 {
			t.Errorf("8,000 runs have left %d bytes", grown)
		}
	})
}
