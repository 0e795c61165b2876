package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// shout stands for a call to a model.
func shout(_ context.Context, prompt string) (string, error) {
	return strings.ToUpper(prompt), nil
}

// Results come back in the order of the input, and the summary proves that none
// is missing.
func ExampleRun() {
	var sum batch.Summary
	prompts := slices.Values([]string{"one", "two", "three"})
	results, err := batch.Run(context.Background(), prompts, shout, batch.WithSummary(&sum))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Index, r.Item, r.Value)
	}
	fmt.Println(sum.Succeeded, sum.Proves())
	// Output:
	// 0 one ONE
	// 1 two TWO
	// 2 three THREE
	// 3 true
}

// The loop is the scope of the run: when it is left, nothing of the run is running.
func ExampleStream() {
	endless := func(yield func(string) bool) {
		for i := 0; ; i++ {
			if !yield(fmt.Sprint("prompt ", i)) {
				return
			}
		}
	}
	for r, err := range batch.Stream(context.Background(), endless, shout, batch.WithInputOrder()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Value)
		if r.Index == 2 {
			break
		}
	}
	// Output:
	// PROMPT 0
	// PROMPT 1
	// PROMPT 2
}

// A plain function steers its own fate: what cannot succeed is not tried again,
// and a refusal waits as long as it says without using up an attempt.
func ExamplePermanent() {
	refused := false
	call := func(_ context.Context, prompt string) (string, error) {
		switch {
		case prompt == "":
			return "", batch.Permanent(errors.New("the prompt is empty"))
		case !refused:
			refused = true
			return "", batch.RetryAfter(time.Millisecond, errors.New("busy"))
		}
		return prompt, nil
	}
	prompts := slices.Values([]string{"hello", ""})
	results, _ := batch.Run(context.Background(), prompts, call, batch.WithConcurrency(1))
	for _, r := range results {
		fmt.Printf("%q, %d calls, %d attempts: %v\n", r.Value, r.Calls, r.Attempts, r.Err)
	}
	// Output:
	// "hello", 2 calls, 1 attempts: <nil>
	// "", 1 calls, 1 attempts: invalid: the prompt is empty
}

// A run that the provider will not serve any more ends with what it said.
func ExampleErrStopped() {
	call := func(context.Context, int) (int, error) {
		return 0, &batch.Error{Kind: batch.QuotaExhausted, Message: "add credits to go on"}
	}
	_, err := batch.Run(context.Background(), slices.Values([]int{1, 2, 3}), call)
	var fault *batch.Error
	fmt.Println(errors.Is(err, batch.ErrStopped), errors.As(err, &fault) && fault.Kind == batch.QuotaExhausted)
	fmt.Println(fault.Message)
	// Output:
	// true true
	// add credits to go on
}

// Two runs that share an account share its limits.
func ExampleNewShared() {
	shared, err := batch.NewShared(batch.WithLimits(batch.Limits{RPM: 60_000}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()
	for _, prompts := range [][]string{{"a", "b"}, {"c"}} {
		results, err := batch.Run(context.Background(), slices.Values(prompts), shout, batch.WithShared(shared))
		fmt.Println(len(results), err)
	}
	status, _ := shared.Status(context.Background(), 1)
	fmt.Println(status.Totals.Calls)
	// Output:
	// 2 <nil>
	// 1 <nil>
	// 3
}

// A pool of several keys: the call asks which it was granted.
func ExampleLaneFrom() {
	call := func(ctx context.Context, _ int) (string, error) { return batch.LaneFrom(ctx), nil }
	results, _ := batch.Run(context.Background(), slices.Values([]int{1, 2, 3, 4}), call,
		batch.WithConcurrency(1),
		batch.WithPool("chat", "key-1", "key-2"),
		batch.WithPoolOf(func(int) string { return "chat" }))
	for _, r := range results {
		fmt.Println(r.Value)
	}
	// Output:
	// key-1
	// key-2
	// key-1
	// key-2
}

// A run that fails too often ends early, and says so.
func ExampleWithMaxFailures() {
	call := func(_ context.Context, i int) (int, error) {
		return 0, batch.Permanent(fmt.Errorf("item %d cannot be read", i))
	}
	var sum batch.Summary
	_, err := batch.Run(context.Background(), slices.Values(make([]int, 1000)), call,
		batch.WithMaxFailures(3), batch.WithConcurrency(1), batch.WithSummary(&sum))
	fmt.Println(errors.Is(err, batch.ErrTooManyFailures), sum.Failed, "failed")
	// Output: true 3 failed
}

// One's own errors get a kind, which says whether the item is tried again.
func ExampleWithClassifier() {
	errNotFound := errors.New("no such page")
	call := func(context.Context, string) (string, error) { return "", errNotFound }
	results, _ := batch.Run(context.Background(), slices.Values([]string{"a"}), call,
		batch.WithClassifier(func(err error) batch.Kind {
			if errors.Is(err, errNotFound) {
				return batch.Invalid // asking again cannot help
			}
			return batch.Unknown // headrace knows better
		}))
	fmt.Println(results[0].Calls, errors.Is(results[0].Err, batch.Invalid), results[0].Err)
	// Output: 1 true no such page
}

// A hook hears of each further call of an item.
func ExampleWithRetryHook() {
	failed := false
	call := func(_ context.Context, prompt string) (string, error) {
		if !failed {
			failed = true
			return "", errors.New("connection lost")
		}
		return prompt, nil
	}
	_, _ = batch.Run(context.Background(), slices.Values([]string{"hello"}), call,
		batch.WithBackoff(time.Millisecond, time.Millisecond),
		batch.WithRetryHook(func(r batch.Retry) { fmt.Printf("%v again, after: %v\n", r.Item, r.Err) }))
	// Output: hello again, after: connection lost
}

// A run whose length is known shows how far it is.
func ExampleWithTotal() {
	var sum batch.Summary
	prompts := []string{"a", "b", "c"}
	_, _ = batch.Run(context.Background(), slices.Values(prompts), shout,
		batch.WithTotal(len(prompts)), batch.WithSummary(&sum),
		batch.WithObserver(func(e batch.Event) {
			if s := e.Status; s != nil { // once a second; this run is over sooner
				fmt.Println(s.Run.Done(), "of", s.Run.Total)
			}
		}))
	fmt.Println(sum.Items(), "of", sum.Total)
	// Output: 3 of 3
}

// Of two runs on one account, the urgent one makes three calls for each of the other's.
func ExampleWithPriority() {
	shared, err := batch.NewShared(batch.WithLimits(batch.Limits{RPM: 60_000}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()
	done := make(chan int)
	for prompts, priority := range map[string]int{"urgent": 3, "nightly": 1} {
		go func() {
			results, _ := batch.Run(context.Background(), slices.Values([]string{prompts}), shout,
				batch.WithShared(shared), batch.WithPriority(priority))
			done <- len(results)
		}()
	}
	fmt.Println(<-done + <-done)
	// Output: 2
}

// Two runs on one Shared, which may have two calls in flight each, have two together.
func ExampleWithConcurrency_shared() {
	shared, err := batch.NewShared(batch.WithConcurrency(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()
	places := make(chan bool, 2)
	call := func(_ context.Context, prompt string) (string, error) {
		select {
		case places <- true:
			time.Sleep(time.Millisecond) // a call takes its time
			<-places
			return prompt, nil
		default:
			return "", batch.Permanent(errors.New("a third call is in flight"))
		}
	}
	failed := make(chan int)
	for range 2 {
		go func() {
			var sum batch.Summary
			_, _ = batch.Run(context.Background(), slices.Values([]string{"a", "b", "c", "d"}), call,
				batch.WithShared(shared), batch.WithConcurrency(2), batch.WithSummary(&sum))
			failed <- sum.Failed
		}()
	}
	fmt.Println(<-failed+<-failed, "failed")
	// Output: 0 failed
}

// The control of a run changes limits while the run is on.
func ExampleControl_SetLimits() {
	ctl := batch.NewControl()
	call := func(ctx context.Context, prompt string) (string, error) {
		return prompt, ctl.SetLimits(ctx, batch.DefaultLane, batch.Limits{RPM: 60_000})
	}
	results, _ := batch.Run(context.Background(), slices.Values([]string{"one", "two"}), call,
		batch.WithLimits(batch.Limits{RPM: 6000}), batch.WithControl(ctl))
	fmt.Println(results[0].Err, results[1].Err)
	// Output: <nil> <nil>
}

// A run stops before it costs more than ten cents; each of its calls may cost up to four.
func ExampleWithMaxCost() {
	call := func(ctx context.Context, prompt string) (string, error) {
		provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 500, OutputTokens: 1000}) // a client of ours does that
		return strings.ToUpper(prompt), nil
	}
	var sum batch.Summary
	_, err := batch.Run(context.Background(), slices.Values([]string{"a", "b", "c", "d"}), call,
		batch.WithConcurrency(1), batch.WithSummary(&sum),
		batch.WithMaxCost(batch.Budget[string]{
			Max:     0.10,
			Reserve: func(string, string, float64) (float64, bool) { return 0.04, true },
			Cost: func(_, _ string, used provider.Usage) (float64, bool) {
				return float64(used.InputTokens)*10e-6 + float64(used.OutputTokens)*30e-6, true
			},
		}))
	fmt.Println(errors.Is(err, batch.ErrMaxCost), sum.Succeeded, sum.Money.Spent)
	// Output: true 2 $0.07
}
