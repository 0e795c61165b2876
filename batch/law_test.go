package batch

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A brokenMaker makes laws that panic in one method, or panics itself, or makes none.
type brokenMaker struct{ at string }

func (m *brokenMaker) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law {
	m.asked("NewLaw")
	if m.at == "nil" {
		return nil
	}
	return brokenLaw{maker: m}
}

func (m *brokenMaker) asked(method string) {
	if m.at == method {
		explode()
	}
}

type brokenLaw struct {
	limiter.Unlimited
	maker *brokenMaker
}

func (l brokenLaw) Wait(time.Time, limiter.Cost) (wait time.Duration, by limiter.Bound) {
	l.maker.asked("Wait")
	return wait, by
}

func (l brokenLaw) Answered(time.Time, limiter.News) { l.maker.asked("Answered") }

func (l brokenLaw) Hear(time.Time, any) (r limiter.Reply) {
	l.maker.asked("Hear")
	return r
}

func (l brokenLaw) Say(_ time.Time, up limiter.Upcoming) (message any, next time.Time) {
	l.maker.asked("Say")
	return message, next
}

// A law of one's own that panics stops its lane and nothing else: the items of other lanes are
// run, so is another run of the same Shared, and the error says what panicked and where.
func TestLawThatPanicsStopsItsLaneAlone(t *testing.T) {
	for _, method := range []string{"nil", "NewLaw", "Wait", "Answered", "Hear", "Say"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := newShared(t, WithLane("bad", LaneConfig{Maker: &brokenMaker{method}}))
				defer shared.Close()
				other := make(chan error)
				go func() {
					_, sum, err := proved(t.Context(), t, numbers(100), takes(time.Second), WithShared(shared), WithConcurrency(2))
					if sum.Succeeded != 100 {
						t.Errorf("the other run: %+v", sum)
					}
					other <- err
				}()
				fn := func(ctx context.Context, i int) (int, error) {
					if i == 0 {
						if err := shared.Tell("bad", "a word"); err != nil {
							t.Error(err)
						}
					}
					return i, pause(ctx, time.Second)
				}
				lane := WithPoolOf(func(i int) string { return []string{"bad", "good"}[i%2] })
				// Named: the law may fail before an item of the other lane is read, and the run would end.
				good := WithPool("good", "good")
				results, sum, err := proved(t.Context(), t, numbers(40), fn, WithShared(shared), WithConcurrency(4), lane, good)
				checkLawError(t, err, method)
				for i, r := range results {
					if i%2 == 1 && r.Err != nil {
						t.Errorf("item %d: %v", i, r.Err)
					}
					if r.Err != nil {
						checkLawError(t, r.Err, method)
					}
				}
				if sum.NotRun < 10 || sum.Failed > 0 {
					t.Errorf("%+v", sum)
				}
				if err := <-other; err != nil {
					t.Errorf("the other run: %v", err)
				}
			})
		})
	}
}

func checkLawError(t *testing.T, err error, method string) {
	t.Helper()
	var law *LawError
	if !errors.Is(err, ErrStopped) || !errors.Is(err, ErrLaw) || !errors.As(err, &law) {
		t.Errorf("%v", err)
		return
	}
	if made := method != "nil"; law.Lane != "bad" || (law.Value == "boom") != made || bytes.Contains(law.Stack, []byte("batch.explode")) != made {
		t.Errorf("lane %s, value %v, stack %s", law.Lane, law.Value, law.Stack)
	}
}

// A run whose only lane has such a law ends at once, and each of its items is not run.
func TestLawThatPanicsEndsARunOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results, sum, err := proved(t.Context(), t, numbers(1<<40), never(t), WithLane("bad", LaneConfig{Maker: &brokenMaker{"Wait"}}), WithPoolOf(func(int) string { return "bad" }))
		checkLawError(t, err, "Wait")
		if sum.NotRun != len(results) || sum.Elapsed != 0 {
			t.Errorf("%d results, %+v", len(results), sum)
		}
	})
}

// Under no law a refusal stops nothing but its item: the next call leaves in its place at
// once, where any other law has the lane wait.
func TestNoLawLimitsNothing(t *testing.T) {
	for law, limited := range map[LawName]bool{NoLaw: false, Model: true, Plain: true} {
		synctest.Test(t, func(t *testing.T) {
			const refusedAfter = 100 * time.Millisecond
			began, next := time.Now(), time.Duration(0)
			var calls atomic.Int32
			fn := func(context.Context, int) (int, error) {
				switch calls.Add(1) {
				case 1:
					time.Sleep(refusedAfter)
					return 0, &Error{Kind: Throttled}
				case 11:
					next = time.Since(began)
				}
				time.Sleep(time.Second)
				return 1, nil
			}
			var sum Summary
			_, err := Run(t.Context(), numbers(100), fn, WithSummary(&sum), WithConcurrency(10), WithLaneDefaults(LaneConfig{Law: law}))
			if err != nil || sum.Succeeded != 100 || (next > refusedAfter) != limited {
				t.Errorf("%v: %v, the call after the refusal left after %v: %+v", law, err, next, sum)
			}
		})
	}
	for _, limit := range []Option{WithLimits(Limits{RPM: 60}), WithPlainLaw(), WithRamp(1, 2, 0), WithLocalServer(0), WithLatencyTarget(1)} {
		if _, err := Run(t.Context(), numbers(1), never(t), limit, WithLaneDefaults(LaneConfig{Law: NoLaw})); !errors.Is(err, ErrConfig) {
			t.Errorf("%v under no law: %v", limit, err)
		}
	}
}

// A keeper makes laws that ask it for each call, and lets calls of all of them leave at one
// rate. It is led from outside: it hears how calls end, and decides.
type keeper struct{}

func (*keeper) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law { return &keptLaw{} }

type keptLaw struct {
	limiter.Unlimited
	permits, refused int
}

// A keptMessage is what such a law has to say.
type keptMessage struct{ want, refused int }

func (l *keptLaw) Wait(time.Time, limiter.Cost) (time.Duration, limiter.Bound) {
	if l.permits == 0 {
		return limiter.UntilNotified, limiter.BoundRequests
	}
	return 0, limiter.BoundNone
}

func (l *keptLaw) Sent(time.Time, limiter.Cost, int) (k limiter.Ticket) {
	l.permits--
	return k
}

func (l *keptLaw) Hear(_ time.Time, message any) (r limiter.Reply) {
	switch w := message.(type) {
	case int:
		l.permits += w
	case error:
		r.Stop = w
	}
	return r
}

func (l *keptLaw) Ended(_ time.Time, _ limiter.Ticket, o machine.Outcome) {
	if o.Signal == machine.Throttled {
		l.refused++
	}
}

func (l *keptLaw) Say(_ time.Time, up limiter.Upcoming) (any, time.Time) {
	return keptMessage{up.Waiting, l.refused}, time.Time{}
}

// keep gives a permit to a lane at each interval while the lane wants one, until there are
// no more words. It returns the number of refused calls in the last word.
func keep(words <-chan []Word, every time.Duration, tell func(lane string)) (refused int) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	want := map[string]keptMessage{}
	for {
		select {
		case all, more := <-words:
			if !more {
				return refused
			}
			for _, w := range all {
				want[w.Lane] = w.Said.(keptMessage)
				refused = want[w.Lane].refused
			}
		case <-ticker.C:
			for lane, w := range want {
				if w.want > 0 {
					tell(lane)
				}
			}
		}
	}
}

// A run whose lane is led from outside makes a call for each permit that it receives. It
// reports how calls end, and neither cools nor gives up by itself.
func TestRemoteLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, calls := NewControl(), 0
		fn := func(_ context.Context, i int) (int, error) {
			if calls++; calls%10 == 0 {
				return 0, &Error{Kind: Throttled, RetryAfter: time.Hour}
			}
			return i, nil
		}
		refused := make(chan int)
		go func() {
			words, err := ctl.Words(t.Context())
			if err != nil {
				t.Error(err)
			}
			refused <- keep(words, time.Second, func(lane string) {
				if err := ctl.Tell(t.Context(), lane, 1); err != nil {
					t.Error(err)
				}
			})
		}()
		var sum Summary
		_, err := Run(t.Context(), numbers(90), fn, WithControl(ctl), WithSummary(&sum), WithConcurrency(8), WithLaneDefaults(LaneConfig{Maker: &keeper{}}))
		if got := <-refused; got == 0 || got != calls-90 {
			t.Errorf("%d of %d calls were refused, and %d were told", calls-90, calls, got)
		}
		if err != nil || sum.Succeeded != 90 || sum.Counters.Cooldowns > 0 || sum.Elapsed < 99*time.Second || sum.Elapsed > 110*time.Second {
			t.Errorf("%v: %d in %v, %+v", err, sum.Succeeded, sum.Elapsed, sum.Counters)
		}
	})
}

// Runs on one Shared share its words; a reason to stop that comes from outside is that of
// their errors.
func TestRemoteLaneOfAShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, err := NewShared(WithLane("led", LaneConfig{Maker: &keeper{}}))
		if err != nil {
			t.Fatal(err)
		}
		gone := &Error{Kind: QuotaExhausted, Message: "elsewhere"}
		given := 0
		kept := make(chan int)
		go func() {
			kept <- keep(shared.Words(), time.Second, func(lane string) {
				var message any = 1
				if given++; given > 10 {
					message = gone
				}
				if err := shared.Tell(lane, message); err != nil {
					t.Error(err)
				}
			})
		}()
		var sum Summary
		_, err = Run(t.Context(), numbers(20), double, WithShared(shared), WithSummary(&sum), WithPoolOf(func(int) string { return "led" }))
		if !errors.Is(err, ErrStopped) || !errors.Is(err, QuotaExhausted) || sum.Succeeded != 10 {
			t.Errorf("%v: %+v", err, sum)
		}
		shared.Close()
		<-kept
	})
}

// Who was not made has nothing to say, and nobody to tell; who has not begun is waited for.
func TestTellNobody(t *testing.T) {
	var none *Shared
	for _, s := range []*Shared{none, {}} {
		if err := s.Tell("", 1); !errors.Is(err, ErrConfig) || s.Words() != nil {
			t.Errorf("%v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ctl := NewControl()
	if err := ctl.Tell(ctx, "", 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if words, err := ctl.Words(ctx); !errors.Is(err, context.Canceled) || words != nil {
		t.Error(err)
	}
}

// A maker that cannot be compared is refused before anything is run.
func TestMakerMustBeComparable(t *testing.T) {
	if _, err := Run(t.Context(), numbers(1), double, WithLane("", LaneConfig{Maker: anyMaker{}})); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

type anyMaker []int

func (anyMaker) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law { return nil }

// An openMaker makes laws that embed [limiter.Unlimited] and say nothing else.
type openMaker struct{}

func (openMaker) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law {
	return &struct{ limiter.Unlimited }{}
}

// A lane whose law embeds Unlimited is no hot loop where calls are refused: it keeps the
// wait that the server names, and where none is named the item rests between its calls.
func TestUnlimitedLaneIsNoHotLoop(t *testing.T) {
	lane := WithLaneDefaults(LaneConfig{Maker: openMaker{}})
	for name, c := range map[string]struct {
		refusal error
		ends    time.Duration // when the server lets calls in
		most    int           // calls in all, of four items
	}{
		"named":   {&Error{Kind: Throttled, HasRetryAfter: true, RetryAfter: 10 * time.Second}, 10 * time.Second, 8},
		"unnamed": {&Error{Kind: Throttled}, 10 * time.Second, 4 + 4*10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				fn := func(_ context.Context, i int) (int, error) {
					if time.Since(began) < c.ends {
						return i, c.refusal
					}
					return i, nil
				}
				var sum Summary
				_, err := Run(t.Context(), numbers(4), fn, lane, WithConcurrency(4), WithSummary(&sum))
				if err != nil || sum.Succeeded != 4 || sum.Counters.Calls > uint64(c.most) || sum.Elapsed > c.ends+time.Second {
					t.Errorf("%d calls in %v: %v", sum.Counters.Calls, sum.Elapsed, err)
				}
			})
		})
	}
}
