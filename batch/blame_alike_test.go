package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// These errors are refusals for good. Some leave open whether the item or the lane is to blame.
var (
	errParameter = &Error{Kind: Invalid, Status: 400, Code: "unsupported_parameter", Param: "max_tokens", Message: "use max_completion_tokens"}
	errHeader    = &Error{Kind: Invalid, Status: 400, Code: "missing_header", Message: "a header is missing"}
	errKey       = &Error{Kind: Unauthorized, Status: 401, Code: "invalid_api_key", Message: "incorrect API key provided"}
	errForbidden = &Error{Kind: Unauthorized, Status: 403, Code: "forbidden", Message: "you may not do this"}
	errModel     = &Error{Kind: ModelNotFound, Status: 404, Code: "model_not_found", Message: "there is no such model"}
	errTooLong   = &Error{Kind: Invalid, Status: 400, Code: "context_length_exceeded", Message: "the prompt is too long"}
	errFiltered  = &Error{Kind: Refused, Status: 400, Code: "content_filter", Message: "the prompt was filtered"}
)

// byItem takes a second for each call, and ends it with the error of its item. Nil is an answer.
func byItem(ends func(i int) error) Func[int, int] {
	return func(ctx context.Context, i int) (int, error) {
		if err := pause(ctx, time.Second); err != nil {
			return 0, err
		}
		return i, ends(i)
	}
}

// always gives every item the same error.
func always(err error) func(int) error { return func(int) error { return err } }

// stoppedAlike fails the test unless the run has stopped because so many items ended alike.
// None of them may count as failed.
func stoppedAlike(t *testing.T, results []Result[int, int], sum Summary, err error, items int, cause error) {
	t.Helper()
	var alike *AlikeError
	var fault *Error
	if !errors.Is(err, ErrStopped) || !errors.Is(err, ErrAlike) || !errors.As(err, &alike) || !errors.As(err, &fault) || !errors.Is(err, cause) {
		t.Fatalf("the run ended with %v", err)
	}
	if alike.Lane != DefaultLane || alike.Items != items || !errors.Is(alike.Cause, cause) {
		t.Errorf("lane %q, %d items, %v; want %d", alike.Lane, alike.Items, alike.Cause, items)
	}
	if !strings.Contains(err.Error(), fmt.Sprint(items)) || !strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("%q does not tell that %d items met %q", err, items, cause)
	}
	if sum.Failed > 0 || sum.Succeeded > 0 {
		t.Errorf("%+v", sum)
	}
	for _, r := range results {
		if !errors.Is(r.Err, ErrNotRun) || !errors.Is(r.Err, ErrStopped) || !errors.Is(r.Err, ErrAlike) || !errors.Is(r.Err, cause) {
			t.Errorf("item %d: %v", r.Index, r.Err)
		}
	}
}

// A mistake in every item stops the lane after the number of items that the option gives.
// None of them has failed.
func TestAlikeFailuresStopTheLane(t *testing.T) {
	for _, n := range []int{1, 2, 20, MaxAlikeFailures} {
		for _, atOnce := range []int{1, 64} {
			t.Run(fmt.Sprintf("%d of %d at once", n, atOnce), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					results, sum, err := judged(t.Context(), t, numbers(10_000), byItem(always(errParameter)), WithAlikeFailures(n), WithConcurrency(atOnce), WithPlainLaw())
					stoppedAlike(t, results, sum, err, n, errParameter)
					if calls := int(sum.Counters.Calls); calls < n || calls >= n+atOnce {
						t.Errorf("%d calls, want %d and those under way", calls, n)
					}
				})
			})
		}
	}
}

// Without the option, or with 0, each item fails by itself.
func TestAlikeFailuresAreOffUnlessAskedFor(t *testing.T) {
	for name, opts := range map[string][]Option{
		"default":        nil,
		"zero":           {WithAlikeFailures(0)},
		"zero is last":   {WithAlikeFailures(20), WithAlikeFailures(0)},
		"keep going":     {WithAlikeFailures(20), WithKeepGoing()},
		"the other way":  {WithKeepGoing(), WithAlikeFailures(20)},
		"earlier answer": {WithAlikeFailures(20), WithAnsweredBefore()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				results, sum, err := judged(t.Context(), t, numbers(100), byItem(always(errParameter)), append(opts, WithPlainLaw())...)
				if err != nil || sum.Failed != 100 {
					t.Fatalf("%v, %+v", err, sum)
				}
				for _, r := range results {
					if !errors.Is(r.Err, Invalid) || errors.Is(r.Err, ErrNotRun) || r.Calls != 1 || r.Attempts != 1 {
						t.Errorf("item %d: %v after %d calls, %d attempts", r.Index, r.Err, r.Calls, r.Attempts)
					}
				}
			})
		})
	}
}

// One good answer clears the lane, and so does a refusal whose words blame its item. All wrong
// items then fail, each after one call.
func TestOneAnswerMakesMistakesTheItems(t *testing.T) {
	for name, c := range map[string]struct {
		tenth  error // the end of the tenth item
		failed int
	}{
		"answered": {nil, 99},
		"too long": {errTooLong, 100},
		"filtered": {errFiltered, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := func(i int) error {
					if i == 10 {
						return c.tenth
					}
					return errParameter
				}
				results, sum, err := judged(t.Context(), t, numbers(100), byItem(ends), WithAlikeFailures(20), WithConcurrency(4), WithPlainLaw())
				if err != nil || sum.Failed != c.failed || sum.NotRun > 0 {
					t.Fatalf("%v, %+v", err, sum)
				}
				for _, r := range results {
					if r.Err != nil && (r.Attempts != 1 || r.Calls != 1 || len(r.Failures) != 1) {
						t.Errorf("item %d: %d attempts, %d calls, %+v", r.Index, r.Attempts, r.Calls, r.Failures)
					}
				}
			})
		})
	}
}

// Items that failed alike wait for the decision whether their lane is to blame. No result goes
// out before it.
func TestResultsWaitForTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			if i == 10 {
				return i, pause(ctx, time.Minute)
			}
			return 0, errParameter
		}
		began, seen := time.Now(), 0
		for r, err := range Stream(t.Context(), numbers(15), fn, WithAlikeFailures(20), WithConcurrency(1), WithPlainLaw()) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; time.Since(began) < time.Minute {
				t.Errorf("item %d had its result after %v: %v", r.Index, time.Since(began), r.Err)
			}
		}
		if seen != 15 {
			t.Errorf("%d results", seen)
		}
	})
}

// An input shorter than a row stops the lane if all items ended alike and none was answered.
// A single item fails, and so do items with different mistakes.
func TestFewerItemsThanARow(t *testing.T) {
	for name, c := range map[string]struct {
		items int
		ends  func(i int) error
		stops error
	}{
		"nineteen alike":       {19, always(errParameter), errParameter},
		"two alike":            {2, always(errParameter), errParameter},
		"one":                  {1, always(errParameter), nil},
		"two mistakes, mixed":  {18, func(i int) error { return []error{errParameter, errHeader}[i%2] }, nil},
		"two mistakes, sorted": {18, func(i int) error { return []error{errParameter, errHeader}[i/9] }, nil},
		"nine that break":      {9, always(errBroken), errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				results, sum, err := judged(t.Context(), t, numbers(c.items), byItem(c.ends), WithAlikeFailures(20), WithConcurrency(4), WithPlainLaw())
				switch {
				case c.stops != nil:
					stoppedAlike(t, results, sum, err, c.items, c.stops)
				case err != nil || sum.Failed != c.items:
					t.Errorf("%v, %+v", err, sum)
				}
			})
		})
	}
}

// Each mistake is counted by itself. The first one with a full row stops the lane, and other
// mistakes in between do not end that row.
func TestEachMistakeIsCountedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := func(i int) error {
			if i%3 == 0 {
				return errHeader
			}
			return errParameter
		}
		results, sum, err := judged(t.Context(), t, numbers(1000), byItem(ends), WithAlikeFailures(20), WithConcurrency(1), WithPlainLaw())
		var alike *AlikeError
		if !errors.As(err, &alike) || alike.Items != 20 || !errors.Is(alike.Cause, errParameter) || sum.Failed > 0 || sum.Counters.Calls != 30 {
			t.Errorf("%v, %+v of %d", err, sum, len(results))
		}
	})
}

// A later run does all items of a stopped row once the mistake is corrected.
func TestAlikeFailuresAreResumable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _, err := judged(t.Context(), t, numbers(50), byItem(always(errParameter)), WithAlikeFailures(20), WithPlainLaw())
		if !errors.Is(err, ErrAlike) {
			t.Fatal(err)
		}
		for _, r := range first {
			if r.Err == nil || !errors.Is(r.Err, ErrNotRun) {
				t.Errorf("item %d: %v", r.Index, r.Err)
			}
		}
		if _, sum, err := judged(t.Context(), t, numbers(50), byItem(always(nil)), WithAlikeFailures(20), WithPlainLaw()); err != nil || sum.Succeeded != 50 {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}

// Twenty wrong items at the start stop the lane, though all others are right. WithKeepGoing
// runs them all.
func TestWrongItemsFirst(t *testing.T) {
	ends := func(i int) error {
		if i < 20 {
			return errParameter
		}
		return nil
	}
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			opts := []Option{WithAlikeFailures(20), WithConcurrency(1), WithPlainLaw()}
			if keep {
				opts = append(opts, WithKeepGoing())
			}
			results, sum, err := judged(t.Context(), t, numbers(200), byItem(ends), opts...)
			switch {
			case !keep:
				stoppedAlike(t, results, sum, err, 20, errParameter)
			case err != nil || sum.Failed != 20 || sum.Succeeded != 180:
				t.Errorf("%v, %+v", err, sum)
			}
		})
	}
}

// On a Shared the answers of one run clear the lane for the next run.
func TestAlikeFailuresOnASharedLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw())
		defer shared.Close()
		if _, _, err := judged(t.Context(), t, numbers(3), byItem(always(nil)), WithShared(shared)); err != nil {
			t.Fatal(err)
		}
		if _, sum, err := judged(t.Context(), t, numbers(100), byItem(always(errParameter)), WithShared(shared), WithAlikeFailures(20)); err != nil || sum.Failed != 100 {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}

// A row may be longer than the read-ahead. Items that fill the read-ahead fail, as no other item
// can come, and they count: the lane stops all the same.
func TestRowLongerThanTheReadAhead(t *testing.T) {
	for name, opts := range map[string][]Option{"as they come": nil, "in input order": {WithInputOrder()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sum Summary
				var last error
				opts := append(opts, WithAlikeFailures(20), WithReadAhead(4), WithConcurrency(4), WithPlainLaw(), WithSummary(&sum))
				for _, err := range Stream(t.Context(), numbers(1000), byItem(always(errParameter)), opts...) {
					last = err
				}
				var alike *AlikeError
				t.Logf("%d failed, %d not run, %d calls", sum.Failed, sum.NotRun, sum.Counters.Calls)
				if !errors.As(last, &alike) || alike.Items != 20 || sum.Failed >= 20 || sum.Counters.Calls > 24 || !sum.Proves() {
					t.Errorf("%v, %+v", last, sum)
				}
			})
		})
	}
}

// Items that are refused alike before the next one has been read stop a lane, too: the input
// may be slower than refusals. None of them has failed.
func TestSlowInputMeetsOneMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(yield func(int) bool) {
			for i := range 200 {
				if time.Sleep(400 * time.Millisecond); !yield(i) {
					return
				}
			}
		}
		_, sum, err := judged(t.Context(), t, slow, byItem(always(errParameter)), WithAlikeFailures(20), WithConcurrency(64))
		if !errors.Is(err, ErrAlike) || sum.Failed > 0 || sum.Counters.Calls > 25 {
			t.Errorf("%v, %d failed in %d calls", err, sum.Failed, sum.Counters.Calls)
		}
	})
}
