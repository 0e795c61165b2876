package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A run keeps the mean latency of a server that answers one call in a tenth of a second
// near its target, under either law; and without a target it takes what it gets.
func TestLatencyTarget(t *testing.T) {
	const each, calls = 100 * time.Millisecond, 600
	for name, c := range map[string]struct {
		opts []Option
		most time.Duration
	}{
		"model":        {[]Option{WithLatencyTarget(time.Second)}, 1250 * time.Millisecond},
		"plain":        {[]Option{WithPlainLaw(), WithLatencyTarget(time.Second)}, 1250 * time.Millisecond},
		"order":        {[]Option{WithLatencyTarget(time.Second), WithPlainLaw()}, 1250 * time.Millisecond},
		"plain, at no": {[]Option{WithPlainLaw(), WithLatencyTarget(0)}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			turn := make(chan struct{}, 1) // the call that holds it is served
			call := func(context.Context, int) (time.Duration, error) {
				came := time.Now()
				turn <- struct{}{}
				time.Sleep(each)
				<-turn
				return time.Since(came), nil
			}
			began := time.Now()
			results, err := Run(t.Context(), numbers(calls), call, c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			var sum time.Duration
			for _, r := range results {
				sum += r.Value
			}
			switch mean, took := sum/calls, time.Since(began); {
			case c.most > 0 && mean > c.most:
				t.Errorf("%s: a mean of %v for a target of a second", name, mean)
			case c.most == 0 && mean < 3*time.Second:
				t.Errorf("%s: a mean of %v", name, mean)
			case took > calls*each*11/10:
				t.Errorf("%s: it took %v, and could in %v", name, took, calls*each)
			}
		})
	}
}

// A target below nothing is none.
func TestLatencyTargetIsNotNegative(t *testing.T) {
	if _, err := Run(t.Context(), numbers(1), never(t), WithLatencyTarget(-1)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
