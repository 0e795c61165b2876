package observe_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// A run of thirty items, recorded: what became of them, and how they failed.
func Example() {
	ask := func(ctx context.Context, n int) (string, error) {
		provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 10, OutputTokens: 2})
		if n%10 == 9 {
			return "", &provider.Error{Kind: provider.Invalid, Status: 400, Message: fmt.Sprintf("prompt %d is too long", n)}
		}
		return "an answer", nil
	}
	prompts := make([]int, 30)
	for k := range prompts {
		prompts[k] = k
	}

	rec := observe.New(observe.Config{
		Total: len(prompts),
		Price: func(_ any, _ string, u provider.Usage) (float64, bool) {
			return float64(u.InputTokens+u.OutputTokens) * 1e-6, true
		},
	})
	_, err := batch.Run(context.Background(), slices.Values(prompts), ask, rec.Options()...)
	p := rec.Snapshot(time.Now()) // while the run goes on, any goroutine may

	fmt.Println(p.State, err)
	fmt.Printf("%d of %d answered, %d calls, %d tokens, $%.6f\n", p.Answered, p.Total, p.Calls, p.Spent.InputTokens+p.Spent.OutputTokens, p.Spent.USD)
	for _, f := range p.Failures {
		fmt.Printf("%d failed: %s %s, %s\n", f.Count, f.Kind, f.Code, f.Message)
	}
	// Output:
	// over <nil>
	// 27 of 30 answered, 30 calls, 360 tokens, $0.000360
	// 3 failed: invalid 400, prompt … is too long
}

// A line each second of what holds the run back.
func ExampleRecorder_Snapshot() {
	rec := observe.New(observe.Config{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		items := slices.Values(make([]int, 1000))
		_, _ = batch.Run(context.Background(), items, func(context.Context, int) (int, error) { return 0, nil }, rec.Options()...)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for running := true; running; {
		select {
		case now := <-tick.C:
			p := rec.Snapshot(now)
			fmt.Printf("%d done, %.1f a second, held by %s (%.0f %%)\n", p.Answered+p.Failed, p.Speed, p.Bottleneck.By, 100*p.Bottleneck.Share)
		case <-done:
			running = false
		}
	}
	fmt.Println(rec.Snapshot(time.Now()).Answered, "answered")
}
