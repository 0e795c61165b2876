package batch

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Each call and each end is reported once, by its worker, and a worker reports one at a
// time.
func TestCallsAndEndsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		var busy [workers]atomic.Bool
		var calls, again, ends, failed atomic.Int64
		attempts := make([]atomic.Int64, 40)
		enter := func(worker int) func() {
			if busy[worker].Swap(true) {
				t.Errorf("worker %d tells two things at once", worker)
			}
			return func() { busy[worker].Store(false) }
		}
		fn := func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Duration(i%5+1) * time.Second)
			switch {
			case i%10 == 3:
				return 0, Permanent(errors.New("no"))
			case i%10 == 7 && attempts[i].Load() == 0:
				return 0, errors.New("broke")
			}
			return i, nil
		}
		_, sum, err := proved(t.Context(), t, numbers(40), fn, exact, WithConcurrency(workers),
			WithGate(func(context.Context) { time.Sleep(time.Second) }),
			WithCalls(func(c Call) {
				defer enter(c.Worker)()
				if n := attempts[c.Item].Add(1); int(n) != c.Attempt || c.Gated != time.Second || c.Latency != time.Duration(c.Item%5+1)*time.Second {
					t.Errorf("call %d: %+v", n, c)
				}
				if calls.Add(1); c.Again {
					again.Add(1)
				}
			}),
			WithEnds(func(e End) {
				defer enter(e.Worker)()
				if *e.In.(*int) != int(e.Item) || int64(e.Calls) != attempts[e.Item].Load() {
					t.Errorf("%+v", e)
				}
				if ends.Add(1); e.Err != nil {
					failed.Add(1)
				}
			}))
		if err != nil || calls.Load() != int64(sum.Counters.Calls) || again.Load() != int64(sum.Counters.HandedOver) || again.Load() != 4 {
			t.Errorf("%v: %d calls were told, %d of them to be made again: %+v", err, calls.Load(), again.Load(), sum.Counters)
		}
		if ends.Load() != 40 || failed.Load() != 4 || sum.Failed != 4 {
			t.Errorf("%d ends were told, %d of failures: %+v", ends.Load(), failed.Load(), sum)
		}
	})
}

// A measuring function that misbehaves changes nothing in the run except its error. It is
// not called again.
func TestMeasuringThatMisbehaves(t *testing.T) {
	ways := map[string]func(){"panics": func() { panic("boom") }, "ends its goroutine": runtime.Goexit}
	for way, misbehave := range ways {
		for _, hook := range []string{"calls", "ends"} {
			t.Run(hook+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const workers = 3
					var reported atomic.Int64
					opt := WithCalls(func(Call) { reported.Add(1); misbehave() })
					if hook == "ends" {
						opt = WithEnds(func(End) { reported.Add(1); misbehave() })
					}
					results, sum, err := proved(t.Context(), t, numbers(30), double, exact, opt, WithConcurrency(workers))
					if !errors.Is(err, ErrObserver) || sum.Succeeded != 30 || sum.Counters.Calls != 30 {
						t.Errorf("%v: %+v", err, sum)
					}
					for _, r := range results {
						if r.Err != nil || r.Value != 2*r.Item {
							t.Errorf("%+v", r)
						}
					}
					if reported.Load() > workers {
						t.Errorf("%d workers told it %d times", workers, reported.Load())
					}
				})
			})
		}
	}
}

// A call that was not made is not reported.
func TestCallsThatWereNotMade(t *testing.T) {
	var reported atomic.Int64
	gate := WithGate(func(context.Context) { panic("no place") })
	_, sum, _ := proved(t.Context(), t, numbers(5), double, exact, gate, WithCalls(func(Call) { reported.Add(1) }))
	if reported.Load() != 0 || sum.Failed != 5 {
		t.Errorf("%d calls were told: %+v", reported.Load(), sum)
	}
}

// A foreign client over provider.Transport reports no usage, and its answer has no method
// for it. The usage is in the results and in the sum, once.
func TestUsageOverTransport(t *testing.T) {
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"Hi"},"finish_reason":"length"}],` +
				`"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}` + "\n")),
		}, nil
	})
	cfg := goopenai.DefaultConfig("sk-not-a-key")
	cfg.HTTPClient = &http.Client{Transport: &provider.Transport{Base: base}}
	api := goopenai.NewClientWithConfig(cfg)
	fn := func(ctx context.Context, _ int) (string, error) {
		answer, err := api.CreateChatCompletion(ctx, goopenai.ChatCompletionRequest{Model: "m"})
		if err != nil {
			return "", err
		}
		return answer.Choices[0].Message.Content, nil
	}
	results, sum, err := proved(t.Context(), t, numbers(3), fn)
	want := provider.Usage{InputTokens: 27, OutputTokens: 12}
	if err != nil || sum.Usage != want || results[0].Usage.InputTokens != 9 || results[0].Finish != "length" {
		t.Errorf("%v, %+v, %+v", err, sum.Usage, results)
	}
}

// The longest durations that Go has mean a long time, and not one that is over: an endless wait
// lasts until the run is called off, here after a week. The driver's alarm is ten seconds ahead
// at most, so that a longer wait costs the test its time.
func TestLongestDurationsAreNotOver(t *testing.T) {
	const endless = time.Duration(math.MaxInt64)
	const week = 7 * 24 * time.Hour
	refused := RetryAfter(0, errors.New("slow down"))
	broken := &Error{Kind: Server, Err: errors.New("broken")}
	for name, c := range map[string]struct {
		fault error
		opts  []Option
	}{
		"cooldown": {refused, []Option{WithPlainLaw(), WithLaneDefaults(LaneConfig{Cooldown: CooldownConfig{Base: endless, Max: endless}})}},
		"backoff":  {broken, []Option{WithBackoff(endless, endless), WithSeed(3)}},
		"breaker": {broken, []Option{WithLaneDefaults(LaneConfig{
			Breaker: BreakerConfig{Consecutive: 1, OpenFor: endless, MaxOpen: endless},
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				fn := func(context.Context, int) (int, error) {
					if tries++; tries == 1 {
						return 0, c.fault
					}
					return 1, nil
				}
				c.opts = append(c.opts, WithConcurrency(1), WithAttemptTimeout(endless), WithItemTimeout(endless), WithLongWait(endless),
					WithFirstAnswer(endless), WithOutagePatience(endless), WithIdleLanes(endless), WithProgressEvery(endless))
				ctx, cancel := context.WithTimeout(t.Context(), week)
				defer cancel()
				results, _, err := proved(ctx, t, numbers(1), fn, c.opts...)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || tries != 1 || took != week {
					t.Errorf("%v after %v and %d calls: %+v", err, took, tries, results)
				}
			})
		})
	}
}

// A pace that is lowered for ever is as low after an hour of answers as it was.
func TestEndlessHoldStaysSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := limiter.ErrorWindowConfig{Hold: math.MaxInt64, Factor: 0.5}
		calls, began := 0, time.Now()
		fn := func(context.Context, int) (int, error) {
			if calls++; calls > 100 && calls <= 160 && calls%2 == 0 {
				return 0, &Error{Kind: Server, Err: errors.New("broken")}
			}
			return 1, nil
		}
		_, _, err := proved(t.Context(), t, numbers(4000), fn,
			WithPlainLaw(), WithLimits(Limits{RPM: 60}), WithConcurrency(4), WithMaxAttempts(9),
			WithLaneDefaults(LaneConfig{Limits: Limits{RPM: 60}, Errors: hold}))
		if took := time.Since(began); err != nil || took < 7000*time.Second {
			t.Errorf("%v: 4,000 calls took %v, at one a second and half of that", err, took)
		}
	})
}

// waits gathers the long waits that an observer gets.
func waits(to *[]LongWait) Option {
	return WithObserver(func(e Event) {
		if e.LongWait != nil {
			*to = append(*to, *e.LongWait)
		}
	})
}

// refusesFirst refuses the first call, and names how long to wait.
func refusesFirst(wait time.Duration) Func[int, int] {
	var once sync.Once
	return func(ctx context.Context, i int) (int, error) {
		err := pause(ctx, time.Second)
		once.Do(func() { err = RetryAfter(wait, errors.New("busy")) })
		return i, err
	}
}

// A lane that waits longer than five minutes, or than the option says, is reported once,
// with the reason and the end: when the wait begins, if its end is known.
func TestLongWaitIsReported(t *testing.T) {
	for _, c := range []struct {
		name  string
		wait  time.Duration
		opts  []Option
		times int
	}{
		{"ten minutes", 10 * time.Minute, nil, 1},
		{"four minutes", 4 * time.Minute, nil, 0},
		{"of a minute", 90 * time.Second, []Option{WithLongWait(time.Minute)}, 1},
		{"of an hour", 10 * time.Minute, []Option{WithLongWait(time.Hour)}, 0},
		{"never", 10 * time.Minute, []Option{WithLongWait(0)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reported []LongWait
				began := time.Now()
				_, sum, err := proved(t.Context(), t, numbers(20), refusesFirst(c.wait), append(c.opts, exact, WithConcurrency(4), waits(&reported))...)
				if err != nil || sum.Counters.Cooldowns != 1 || len(reported) != c.times {
					t.Fatalf("%v, %+v, told %v", err, sum.Counters, reported)
				}
				for _, w := range reported {
					if w.Lane != machine.DefaultPool || w.Why != "throttled" || w.Own || w.Items < 1 ||
						w.At.Sub(began) != time.Second || w.Until.Sub(began) != time.Second+c.wait {
						t.Errorf("told %+v", w)
					}
				}
			})
		})
	}
}

// An outage is one wait, however often it is tried whether it is over.
func TestOutageIsOneLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []LongWait
		began := time.Now()
		fn := func(ctx context.Context, i int) (int, error) {
			err := pause(ctx, 100*time.Millisecond)
			if time.Since(began) < time.Hour {
				err = &provider.Error{Kind: provider.Server, Status: 500}
			}
			return i, err
		}
		_, sum, err := proved(t.Context(), t, numbers(1000), fn, WithMaxAttempts(1000), WithFirstAnswer(0), waits(&reported))
		if err != nil || sum.Counters.Probes < 100 || len(reported) != 1 {
			t.Fatalf("%v, %+v, told %v", err, sum.Counters, reported)
		}
		if w := reported[0]; w.Cause != machine.ByBreaker || w.At.Sub(w.Since) > DefaultLongWait || w.Until.Sub(w.Since) <= DefaultLongWait {
			t.Errorf("told %+v, after %v", w, w.At.Sub(w.Since))
		}
	})
}

// An item that waits on its own account for so long is reported by its number. Other items
// in the run are not reported.
func TestItemThatWaitsForLongIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []LongWait
		failing := map[int]bool{3: true, 5: true}
		fn := func(ctx context.Context, i int) (int, error) {
			pause(ctx, time.Duration(1+i)*time.Second)
			if failing[i] {
				failing[i] = false
				return 0, &provider.Error{Kind: provider.Server, Status: 500, RetryAfter: 10 * time.Minute, HasRetryAfter: true}
			}
			return i, nil
		}
		_, _, err := proved(t.Context(), t, numbers(8), fn, WithConcurrency(1), waits(&reported))
		if err != nil || len(reported) != 1 {
			t.Fatalf("%v, told %v", err, reported)
		}
		if w := reported[0]; !w.Own || w.Item != 3 || w.Until.Sub(w.At) != 10*time.Minute {
			t.Errorf("told %+v", w)
		}
	})
}

// A pause is not a wait that anybody need be told of, nor is a call that takes long, nor
// a line behind it.
func TestPauseIsNoLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []LongWait
		ctl := NewControl()
		go func() {
			time.Sleep(10 * time.Second)
			_ = ctl.Pause(t.Context())
			time.Sleep(time.Hour)
			_ = ctl.Resume(t.Context())
		}()
		_, _, err := proved(t.Context(), t, numbers(20), takes(7*time.Minute), WithAttemptTimeout(0), WithConcurrency(2), WithControl(ctl), waits(&reported))
		if err != nil || len(reported) > 0 {
			t.Errorf("%v, told %v", err, reported)
		}
	})
}

// Calls leave at the same moments whether waits are reported or not.
func TestTellingOfLongWaitsChangesNothing(t *testing.T) {
	sent := func(opts ...Option) (times []time.Time) {
		synctest.Test(t, func(t *testing.T) {
			var log journal
			refused := map[int]int{}
			fn := func(ctx context.Context, i int) (int, error) { // one at a time
				log.add("")
				pause(ctx, time.Second)
				if refused[i]++; i%7 == 0 && refused[i] < 4 {
					return 0, RetryAfter(time.Duration(i)*time.Second, errors.New("busy"))
				}
				return i, nil
			}
			_, _, _ = proved(t.Context(), t, numbers(60), fn, append(opts, exact, WithConcurrency(1), WithSeed(1))...)
			times = log.times
		})
		return times
	}
	var reported []LongWait
	alone, said := sent(), sent(WithLongWait(5*time.Second), waits(&reported))
	if len(reported) == 0 || !slices.Equal(alone, said) {
		t.Errorf("told of %d waits; %d calls left in %v, and %d in %v", len(reported),
			len(alone), alone[len(alone)-1].Sub(alone[0]), len(said), said[len(said)-1].Sub(said[0]))
	}
}

// What cannot be meant is an error before any call.
func TestWithLongWaitIsChecked(t *testing.T) {
	shared := must.Get(NewShared(WithLongWait(time.Hour)))(t)
	defer shared.Close()
	for name, opts := range map[string][]Option{
		"less than 0": {WithLongWait(-1)},
		"NewShared":   {WithLongWait(time.Minute), WithShared(shared)},
	} {
		if _, err := Run(t.Context(), numbers(1), never(t), opts...); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "WithLongWait") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := WithLongWait(time.Minute).String(); got != "WithLongWait(1m0s)" {
		t.Error(got)
	}
}
