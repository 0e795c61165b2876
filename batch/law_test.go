package batch

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

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

func (l brokenLaw) Say(_ time.Time, up limiter.Upcoming) (word any, next time.Time) {
	l.maker.asked("Say")
	return word, next
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
