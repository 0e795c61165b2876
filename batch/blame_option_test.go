package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/headrace/headrace/provider"
)

// wrongItem is a request that no repetition makes acceptable.
func wrongItem(i int) error {
	return &Error{Kind: Invalid, Status: 400, Code: "unsupported", Message: fmt.Sprintf("item %d is wrong", i)}
}

// failsIf fails the items for which wrong says so, and answers the others.
func failsIf(wrong func(i int) bool) Func[int, int] {
	return func(ctx context.Context, i int) (int, error) {
		err := pause(ctx, 10*time.Millisecond) // so that each result is taken before the next call ends
		if wrong(i) {
			err = wrongItem(i)
		}
		return i, err
	}
}

// WithMaxFailureShare stops a run once 100 items have ended and more than that share has failed.
// The items that were not run are left to a later run.
func TestMaxFailureShare(t *testing.T) {
	for name, c := range map[string]struct {
		share      float64
		items      int
		wrong      func(i int) bool
		stops      bool
		failed, at int // at: items that ended, where it stops
	}{
		"all of the first 100":        {0.5, 1000, func(i int) bool { return true }, true, 100, 100},
		"all of 99":                   {0.5, 99, func(i int) bool { return true }, false, 99, 0},
		"all of 100":                  {0.5, 100, func(i int) bool { return true }, true, 100, 100},
		"exactly the share":           {0.05, 1000, func(i int) bool { return i%20 == 19 }, false, 50, 0},
		"one more than the share":     {0.05, 1000, func(i int) bool { return i%20 == 19 || i == 200 }, true, 11, 201},
		"bad ones first":              {0.05, 1000, func(i int) bool { return i < 5 }, false, 5, 0},
		"a bad patch in the middle":   {0.05, 1000, func(i int) bool { return i >= 400 && i < 500 }, true, 22, 422},
		"a tiny share":                {1e-9, 1000, func(i int) bool { return i == 500 }, true, 1, 501},
		"a share of one is never met": {1, 1000, func(i int) bool { return true }, false, 1000, 0},
		"no share":                    {0, 1000, func(i int) bool { return true }, false, 1000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				results, sum, err := judged(t.Context(), t, numbers(c.items), failsIf(c.wrong), WithConcurrency(1), WithReadAhead(1), WithMaxFailureShare(c.share), WithPlainLaw())
				if !c.stops {
					if err != nil || sum.Failed != c.failed || len(results) != c.items {
						t.Fatalf("%v, %+v", err, sum)
					}
					return
				}
				var fault *Error
				if !errors.Is(err, ErrTooManyFailures) || errors.Is(err, ErrDrained) || !errors.Is(err, Invalid) || !errors.As(err, &fault) || !strings.Contains(err.Error(), "%") {
					t.Fatalf("%v", err)
				}
				// Calls in flight at that moment end as well.
				if ended := sum.Failed + sum.Succeeded; ended < c.at || ended > c.at+3 || sum.Failed < c.failed || sum.Failed > c.failed+3 {
					t.Errorf("it stopped after %d items, %d of them failed; want %d and %d", ended, sum.Failed, c.at, c.failed)
				}
				for _, r := range results[sum.Failed+sum.Succeeded:] {
					if !errors.Is(r.Err, ErrNotRun) || r.Calls > 0 {
						t.Errorf("item %d: %v after %d calls", r.Index, r.Err, r.Calls)
					}
				}
			})
		})
	}
}

// The bound on failures that is met first stops the run, and the error names that bound.
func TestMaxFailuresAndShare(t *testing.T) {
	for name, c := range map[string]struct {
		most  int
		share float64
		want  string
	}{
		"number first": {5, 0.05, "5 items failed"},
		"share first":  {500, 0.05, "%"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := failsIf(func(int) bool { return true })
				_, sum, err := judged(t.Context(), t, numbers(1000), all, WithConcurrency(1), WithReadAhead(1),
					WithMaxFailures(c.most), WithMaxFailureShare(c.share), WithPlainLaw())
				if !errors.Is(err, ErrTooManyFailures) || !strings.Contains(err.Error(), c.want) || sum.Failed > 110 {
					t.Errorf("%v, %+v", err, sum)
				}
			})
		})
	}
}

// Items that are not run count neither as failed nor as ended.
func TestShareCountsWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			if i < 60 {
				return 0, wrongItem(i)
			}
			return 0, &Error{Kind: QuotaExhausted, Status: 429, Message: "your plan is used up"}
		}
		_, sum, err := judged(t.Context(), t, numbers(1000), fn, WithConcurrency(4), WithMaxFailureShare(0.5))
		if !errors.Is(err, ErrStopped) || errors.Is(err, ErrTooManyFailures) || sum.Failed != 60 {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}

// finishes answers every item, some with the word with which a content filter ends.
func finishes(ctx context.Context, i int) (string, error) {
	word := "stop"
	if i%10 == 3 {
		word = "content_filter"
	}
	r := provider.RecorderFrom(ctx)
	r.Response(200, nil)
	r.Finish(word)
	r.Usage(Usage{OutputTokens: 1})
	return "half of an", pause(ctx, time.Second)
}

// A filtered answer is a result and is counted by itself. WithFilteredFailing makes it a failure
// of its item after one call. Its usage counts in both cases.
func TestFilteredAnswers(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails ", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := []Option{WithConcurrency(8)}
				if fails {
					opts = append(opts, WithFilteredFailing())
				}
				results, sum, err := judged(t.Context(), t, numbers(100), finishes, opts...)
				wantFailed, wantFiltered := 0, 10
				if fails {
					wantFailed, wantFiltered = 10, 0
				}
				if err != nil || sum.Failed != wantFailed || sum.Filtered != wantFiltered || sum.Succeeded != 100-wantFailed || sum.Usage.OutputTokens != 100 {
					t.Errorf("%v, %+v", err, sum)
				}
				for _, r := range results {
					filtered := r.Index%10 == 3
					var fault *Error
					switch {
					case !fails || !filtered:
						if r.Err != nil || r.Value != "half of an" {
							t.Errorf("item %d: %q, %v", r.Index, r.Value, r.Err)
						}
					case !errors.Is(r.Err, Refused) || !errors.As(r.Err, &fault) || fault.Code != "content_filter" || fault.Status != 200 || r.Calls != 1 || r.Attempts != 1:
						t.Errorf("item %d: %v, %d calls", r.Index, r.Err, r.Calls)
					}
					if filtered && r.Finish != "content_filter" {
						t.Errorf("item %d ended by %q", r.Index, r.Finish)
					}
				}
			})
		})
	}
}

// Filtered answers stop no lane, however many of them fail: they prove that the server is well.
func TestFilteredAnswersBlameNoLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			provider.RecorderFrom(ctx).Finish("content_filter")
			return i, pause(ctx, time.Second)
		}
		_, sum, err := judged(t.Context(), t, numbers(100), fn, WithFilteredFailing(), WithAlikeFailures(3))
		if err != nil || sum.Failed != 100 {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}

// Result.Failures lists the calls that were not answered as hoped, also of an item that was
// answered in the end. Calls in a row that ended alike are one entry.
func TestFailuresOfAnItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := []error{
			&Error{Kind: Throttled, Status: 429, Message: "slow down"},
			errBroken, errBroken,
			errReset,
			errBroken,
		}
		fn := func(ctx context.Context, i int) (int, error) {
			if n := CallFrom(ctx); i == 0 && n <= len(ends) {
				return 0, ends[n-1]
			}
			return i, pause(ctx, time.Second)
		}
		results, _, err := judged(t.Context(), t, numbers(400), fn, WithConcurrency(4), WithMaxAttempts(9))
		want := []Failure{
			{Kind: Throttled, Status: 429, Message: "slow down", Calls: 1},
			{Kind: Server, Status: 500, Message: "internal error", Calls: 2},
			{Kind: TransportFault, Status: 0, Message: "connection reset by peer", Calls: 1},
			{Kind: Server, Status: 500, Message: "internal error", Calls: 1},
		}
		if r := results[0]; err != nil || r.Err != nil || !slices.Equal(r.Failures, want) || r.Calls != 6 {
			t.Errorf("%v, %v: %+v in %d calls", err, r.Err, r.Failures, r.Calls)
		}
		for _, r := range results[1:] {
			if r.Failures != nil {
				t.Errorf("item %d has failures: %+v", r.Index, r.Failures)
			}
		}
	})
}

// Result.Failures has at most MostFailures entries. The last one counts all further calls, and
// a message is one line of at most 200 bytes.
func TestFailuresAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 33
		fn := func(ctx context.Context, i int) (int, error) {
			return 0, fmt.Errorf("%d: %s\nmore", CallFrom(ctx), strings.Repeat("é", 300))
		}
		results, _, err := judged(t.Context(), t, numbers(1), fn, WithMaxAttempts(calls))
		r := results[0]
		if err != nil || r.Err == nil || r.Calls != calls || len(r.Failures) != MostFailures {
			t.Fatalf("%v, %v: %d failures of %d calls", err, r.Err, len(r.Failures), r.Calls)
		}
		sum := 0
		for i, f := range r.Failures {
			sum += f.Calls
			if !strings.HasPrefix(f.Message, fmt.Sprint(i+1, ": é")) || len(f.Message) > 200 || !utf8.ValidString(f.Message) || strings.Contains(f.Message, "\n") {
				t.Errorf("failure %d: %q of %d bytes", i, f.Message, len(f.Message))
			}
		}
		if sum != calls || r.Failures[MostFailures-1].Calls != calls-MostFailures+1 {
			t.Errorf("%d calls are told of, the last failure has %d", sum, r.Failures[MostFailures-1].Calls)
		}
	})
}

// Calls that were cut off, that panicked or that never left are in Result.Failures, too. An
// item that was not run lists its failures until then.
func TestFailuresOfEveryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		fn := func(ctx context.Context, i int) (int, error) {
			switch i {
			case 0:
				return 0, pause(ctx, time.Hour)
			case 1:
				return 0, errNobody
			case 2:
				return 0, errBroken
			}
			explode()
			return 0, nil
		}
		results, sum, err := judged(ctx, t, numbers(4), fn, WithAttemptTimeout(time.Second), WithBackoff(20*time.Hour, 20*time.Hour), WithPlainLaw())
		if !errors.Is(err, context.Canceled) || sum.NotRun != 3 || sum.Failed != 1 {
			t.Fatalf("%v, %+v", err, sum)
		}
		for i, want := range []Failure{
			{Kind: Timeout, Status: 0, Message: "no answer within 1s", Calls: 1},
			{Kind: TransportFault, Status: 0, Message: "connection refused", Calls: 1},
			{Kind: Server, Status: 500, Message: "internal error", Calls: 1},
			{Kind: Unknown, Status: 0, Message: "batch: function panicked: boom", Calls: 1},
		} {
			all := results[i].Failures
			if len(all) != 1 || all[0].Kind != want.Kind || all[0].Status != want.Status || all[0].Calls != 1 || !strings.HasSuffix(all[0].Message, want.Message) {
				t.Errorf("item %d: %+v, want %+v", i, all, want)
			}
		}
	})
}

// A wrong value of an option is ErrConfig before any call. The error names the option, the
// value and the bound. Zero is a right value.
func TestBlameOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		option Option
		words  []string // none: it works
	}{
		{WithMaxFailures(-1), []string{"WithMaxFailures", "-1", "0"}},
		{WithMaxFailures(math.MinInt), []string{"WithMaxFailures", "less than 0"}},
		{WithMaxFailureShare(-0.01), []string{"WithMaxFailureShare", "-0.01", "0"}},
		{WithMaxFailureShare(1.01), []string{"WithMaxFailureShare", "1.01", "more than 1"}},
		{WithMaxFailureShare(5), []string{"WithMaxFailureShare", "5", "more than 1"}},
		{WithMaxFailureShare(math.NaN()), []string{"WithMaxFailureShare", "NaN"}},
		{WithMaxFailureShare(math.Inf(1)), []string{"WithMaxFailureShare", "Inf"}},
		{WithAlikeFailures(-1), []string{"WithAlikeFailures", "-1", "0"}},
		{WithAlikeFailures(256), []string{"WithAlikeFailures", "256", "255"}},
		{WithOutagePatience(-time.Second), []string{"WithOutagePatience", "-1s", "0s"}},
		{WithOutagePatience(math.MinInt64), []string{"WithOutagePatience", "less than 0s"}},
		{WithFirstAnswer(-time.Second), []string{"WithFirstAnswer", "-1s", "0s"}},
		{WithKeyOf[int](nil), []string{"WithKeyOf", "nil"}},
		{WithKeyOf(func(string) string { return "" }), []string{"WithKeyOf", "func(string) string", "func(int) string"}},
		{WithMemory(Memory{Items: map[string]ItemMemory{"k": {}}}), []string{"WithMemory", `"k"`, "0 failures"}},
		{WithMemory(Memory{Items: map[string]ItemMemory{"k": {Failures: 2, Doubts: 3}}}), []string{"WithMemory", `"k"`, "3"}},
		{WithMemory(Memory{Items: map[string]ItemMemory{"k": {Failures: 2, Doubts: -1}}}), []string{"WithMemory", `"k"`, "-1"}},
		{WithMemory(Memory{Items: map[string]ItemMemory{"k": {Failures: 300, Doubts: 256}}}), []string{"WithMemory", `"k"`, "256"}},
		{WithMaxFailures(0), nil},
		{WithMaxFailureShare(0), nil},
		{WithMaxFailureShare(1), nil},
		{WithAlikeFailures(0), nil},
		{WithAlikeFailures(MaxAlikeFailures), nil},
		{WithOutagePatience(0), nil},
		{WithOutagePatience(math.MaxInt64), nil},
		{WithMemory(Memory{Items: map[string]ItemMemory{"": {Failures: 1}}}), nil},
		{WithMemory(Memory{Items: map[string]ItemMemory{"k": {Failures: math.MaxInt, Doubts: 255}}}), nil},
	} {
		if c.words == nil {
			if _, sum, err := judged(t.Context(), t, numbers(3), double, WithPlainLaw(), c.option); err != nil || sum.Succeeded != 3 {
				t.Errorf("%v: %v", c.option, err)
			}
			continue
		}
		_, err := Run(t.Context(), numbers(3), never(t), c.option)
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v, want ErrConfig", c.option, err)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v: %q does not tell %q", c.option, err, word)
			}
		}
	}
}
