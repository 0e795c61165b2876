package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

var errForm = errors.New("at '/age': got string, want integer")

// answering takes a second for each call, which uses a token each way and ends in that way. fits
// says whether the answer of an item's nth call fits, from 1.
func answering(finish string, fits func(i, n int) bool) Func[int, int] {
	return func(ctx context.Context, i int) (int, error) {
		if err := pause(ctx, time.Second); err != nil {
			return 0, err
		}
		r := provider.RecorderFrom(ctx)
		r.Usage(provider.Usage{InputTokens: 1, OutputTokens: 1})
		r.Finish(finish)
		if fits(i, CallFrom(ctx)) {
			return i, nil
		}
		return -i, DoesNotFit(errForm)
	}
}

// An item whose answer does not fit is asked again, at once and without an attempt. Each call
// counts in its usage. One that has no retry left fails, and its value comes with the error.
func TestMisfitIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		retries, bad, calls int
		fails               bool
	}{
		{0, 1, 1, true},
		{1, 1, 2, false},
		{2, 1, 2, false},
		{2, 2, 3, false},
		{2, 9, 3, true},
		{MaxMisfitRetries, 99, 1 + MaxMisfitRetries, true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				fits := func(i, n int) bool { return i != 7 || n > c.bad }
				results, sum, err := judged(t.Context(), t, numbers(20), answering("stop", fits),
					WithMisfitRetries(c.retries, 50), WithMaxAttempts(1), WithConcurrency(1), WithAlikeFailures(20))
				r := results[7]
				if err != nil || sum.Failed+sum.Succeeded != 20 || (r.Err != nil) != c.fails || errors.Is(r.Err, Misfit) != c.fails || errors.Is(r.Err, errForm) != c.fails {
					t.Fatalf("%v, %v, %+v", err, r.Err, sum)
				}
				if r.Calls != c.calls || r.Attempts != 1 || r.Usage.OutputTokens != int64(c.calls) || (r.Value == -7) != c.fails {
					t.Errorf("value %d, %d calls, %d attempts, %+v", r.Value, r.Calls, r.Attempts, r.Usage)
				}
				if took := time.Since(began); took != time.Duration(19+c.calls)*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// All items together have no more retries than a tenth of the answers, or than the option says.
func TestMisfitsHaveABudget(t *testing.T) {
	for _, c := range []struct{ items, inAll, least, most int }{
		{1000, 0, 90, 100}, {1000, 100, 100, 100}, {1000, 7, 7, 7}, {5, 0, 1, 1}, {19, 0, 1, 1},
	} {
		for _, atOnce := range []int{1, 64} {
			t.Run(fmt.Sprintf("%+v, %d at once", c, atOnce), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fits := func(i, _ int) bool { return i%2 == 0 }
					_, sum, err := judged(t.Context(), t, numbers(c.items), answering("stop", fits),
						WithMisfitRetries(2, c.inAll), WithConcurrency(atOnce), WithPlainLaw())
					if more := int(sum.Counters.Calls) - c.items; err != nil || more < c.least || more > c.most {
						t.Errorf("%v, %d calls more, want %d to %d", err, more, c.least, c.most)
					}
				})
			})
		}
	}
}

// The same cut would come again: such an answer is final, whatever the budget.
func TestCutAnswerIsNotAskedAgain(t *testing.T) {
	for finish, calls := range map[string]int{"stop": 3, "": 3, "tool_calls": 3, "length": 1, "max_tokens": 1, "content_filter": 1} {
		synctest.Test(t, func(t *testing.T) {
			results, _, err := judged(t.Context(), t, numbers(1), answering(finish, neverFits), WithMisfitRetries(2, 9))
			if r := results[0]; err != nil || r.Calls != calls || !errors.Is(r.Err, Misfit) {
				t.Errorf("%q: %v, %v after %d calls, want %d", finish, err, r.Err, r.Calls, calls)
			}
		})
	}
}

func neverFits(int, int) bool { return false }

// If none of the first answers fits, the lane stops, also if earlier runs were answered on it.
// The items under way are left to a later run, and errors.As finds what is wrong.
func TestNoAnswerFits(t *testing.T) {
	for _, atOnce := range []int{1, 8, 64} {
		t.Run(fmt.Sprint(atOnce), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				results, sum, err := judged(t.Context(), t, numbers(10_000), answering("stop", neverFits),
					WithMisfitRetries(2, 1000), WithAlikeFailures(20), WithConcurrency(atOnce), WithAnsweredBefore(), WithPlainLaw())
				why := new(MisfitsError)
				if !errors.Is(err, ErrStopped) || !errors.Is(err, ErrAlike) || !errors.As(err, &why) || !errors.Is(err, errForm) || !errors.Is(err, Misfit) {
					t.Fatalf("the run ended with %v", err)
				}
				if why.Answers != 20 || !strings.Contains(err.Error(), "none of the first 20 answers fits") {
					t.Errorf("%d answers: %v", why.Answers, err)
				}
				if calls := int(sum.Counters.Calls); calls < 20 || calls >= 20+atOnce {
					t.Errorf("%d calls, want 20 and those under way", calls)
				}
				for _, r := range results {
					if r.Err == nil || !errors.Is(r.Err, Misfit) || !errors.Is(r.Err, ErrNotRun) && r.Calls < 3 {
						t.Errorf("item %d: %v after %d calls", r.Index, r.Err, r.Calls)
					}
				}
			})
		})
	}
}

// On a Shared, a run of which no answer fits ends alone: another on the same lane goes on.
func TestNoAnswerFitsOnAShared(t *testing.T) {
	for _, atOnce := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			shared, err := NewShared(WithConcurrency(2*atOnce), WithPlainLaw())
			if err != nil {
				t.Fatal(err)
			}
			var other Summary
			var otherErr error
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, otherErr = Run(t.Context(), numbers(200), answering("stop", func(int, int) bool { return true }),
					WithShared(shared), WithSummary(&other), WithConcurrency(atOnce), WithMisfitRetries(2, 1000), WithAlikeFailures(20))
			}()
			results, sum, err := judged(t.Context(), t, numbers(1000), answering("stop", neverFits),
				WithShared(shared), WithMisfitRetries(2, 1000), WithAlikeFailures(20), WithConcurrency(atOnce))
			why := new(MisfitsError)
			if !errors.Is(err, ErrStopped) || !errors.Is(err, ErrAlike) || !errors.As(err, &why) || why.Answers != 20 || !errors.Is(err, errForm) {
				t.Errorf("the run ended with %v", err)
			}
			if calls := int(sum.Counters.Calls); calls < 20 || calls >= 20+atOnce || sum.NotRun+sum.Failed != len(results) {
				t.Errorf("%d calls, %+v", calls, sum)
			}
			if <-over; otherErr != nil || other.Succeeded != 200 {
				t.Errorf("the other run: %v, %+v", otherErr, other)
			}
			shared.Close()
		})
	}
}

// One answer that fits among the first is enough. Then each misfit is its item's, and so it is if
// the run is to keep going, or nothing asks for a stop.
func TestOneAnswerFits(t *testing.T) {
	for name, c := range map[string]struct {
		fits int
		opts []Option
	}{
		"the twentieth": {19, []Option{WithAlikeFailures(20)}},
		"keep going":    {-1, []Option{WithAlikeFailures(20), WithKeepGoing()}},
		"no stop":       {-1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fits := func(i, _ int) bool { return i == c.fits }
				_, sum, err := judged(t.Context(), t, numbers(100), answering("stop", fits),
					append(c.opts, WithMisfitRetries(0, 0), WithConcurrency(1), WithReadAhead(1))...)
				if err != nil || sum.NotRun > 0 || sum.Failed < 99 {
					t.Errorf("%v, %+v", err, sum)
				}
			})
		})
	}
}

// Without the option a misfit is final, and stops nothing.
func TestMisfitWithoutTheOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results, sum, err := judged(t.Context(), t, numbers(100), answering("stop", neverFits), WithAlikeFailures(20))
		if err != nil || sum.Failed != 100 || sum.Counters.Calls != 100 || !errors.Is(results[0].Err, Misfit) {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}

// A function may have an item asked again by itself. That uses no attempt, and ends at a cut and after a number of retries.
func TestMisfitDecidedByTheFunction(t *testing.T) {
	for _, c := range []struct {
		finish      string
		kind        provider.Kind
		again, good int // calls after which the function asks again, and the first one whose answer fits
		calls       int
		opts        []Option
	}{
		{"stop", Misfit, 2, 99, 3, nil},
		{"stop", Misfit, 9, 3, 3, nil},
		{"stop", Misfit, 99, 99, 1 + MaxMisfitRetries, nil},
		{"length", Misfit, 9, 99, 1, nil},
		{"stop", Invalid, 9, 99, 1, nil},
		{"stop", Misfit, 9, 99, 1, []Option{WithMisfitRetries(0, 0)}},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fn := func(ctx context.Context, i int) (int, error) {
					provider.RecorderFrom(ctx).Finish(c.finish)
					n := CallFrom(ctx)
					if n >= c.good {
						return i, nil
					}
					return 0, &Error{Kind: c.kind, Err: errForm, AskAgain: n <= c.again}
				}
				results, sum, err := judged(t.Context(), t, numbers(3), fn, append(c.opts, WithMaxAttempts(1))...)
				r := results[1]
				if err != nil || sum.Failed+sum.Succeeded != 3 || (r.Err == nil) != (c.calls >= c.good) || r.Calls != c.calls || r.Attempts != 1 {
					t.Errorf("%v, %v after %d calls and %d attempts, want %d", err, r.Err, r.Calls, r.Attempts, c.calls)
				}
			})
		})
	}
}

// A lane works well whose answers do not fit: nothing breaks, cools or slows down.
func TestMisfitsAreNoFaultOfTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, sum, err := judged(t.Context(), t, numbers(1000), answering("stop", neverFits), WithMisfitRetries(1, 100), WithConcurrency(50))
		if took := time.Since(began); err != nil || took > 40*time.Second {
			t.Errorf("%v after %v, %+v", err, took, sum)
		}
	})
}

// An answer that is Measured tells its usage also if it does not fit.
func TestMisfitIsMeasured(t *testing.T) {
	fn := func(_ context.Context, i int) (*spent, error) {
		if i == 0 {
			return &spent{5}, DoesNotFit(errForm)
		}
		return nil, DoesNotFit(errForm)
	}
	results, _, err := judged(t.Context(), t, numbers(2), fn)
	if err != nil || results[0].Usage.OutputTokens != 5 || !errors.Is(results[1].Err, Misfit) || DoesNotFit(nil) != nil {
		t.Errorf("%v, %+v", err, results)
	}
}

// An item has no more retries than it may have, however many other failures came before.
func TestMisfitsAfterManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			if n := CallFrom(ctx); n <= MostFailures {
				return 0, RetryAfter(time.Millisecond, fmt.Errorf("refusal %d", n))
			}
			return i, DoesNotFit(errForm)
		}
		results, _, err := judged(t.Context(), t, numbers(1), fn, WithMisfitRetries(2, 25))
		if r := results[0]; err != nil || !errors.Is(r.Err, Misfit) || r.Calls > MostFailures+3 {
			t.Errorf("%v, %v after %d calls", err, r.Err, r.Calls)
		}
	})
}

// The error of a lane names as many answers as were asked for, whichever of the workers is heard first.
func TestLaterAnswerNamesTheSameNumber(t *testing.T) {
	r := &run[int, int]{config: configure([]Option{WithAlikeFailures(20)}), fits: make(chan fitCounts, 1)}
	r.fits <- fitCounts{answers: 19}
	for range 3 {
		e := &ending{err: Misfit}
		if r.judgeFit(&job[int, int]{}, "lane", e); e.unfitAnswers != 20 {
			t.Errorf("%d answers, want 20", e.unfitAnswers)
		}
	}
}
