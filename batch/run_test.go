package batch

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Every item gives one result at its own place, whatever the concurrency.
func TestRunReturnsResultsInInputOrder(t *testing.T) {
	for _, workers := range []int{1, 2, 64} {
		results, sum, err := proved(t.Context(), t, numbers(1000), double, WithConcurrency(workers), WithReadAhead(3))
		if err != nil || sum.Succeeded != 1000 {
			t.Fatalf("%v %+v", err, sum)
		}
		for i, r := range results {
			if r.Index != i || r.Item != i || r.Value != 2*i || r.Lane != machine.DefaultPool || r.Attempts != 1 || r.Calls != 1 {
				t.Fatalf("result %d is %+v", i, r)
			}
		}
	}
}

// A result goes out before the coordinator hears that its item is settled: while
// the one has no room, the other is not told.
func TestResultGoesOutFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := coordinator.New(coordinator.Config{})
		go c.Run()
		s, err := c.Open(t.Context(), machine.RunConfig{})
		if err != nil {
			t.Fatal(err)
		}
		s.Offer([]*machine.Item{{}})
		s.EndInput()
		r := &run[int, int]{config: new(config), session: s, results: make(chan *job[int, int])}
		settled := func() uint64 {
			synctest.Wait()
			status, err := c.Status(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return status.Totals.Settled
		}
		go r.deliver(new(leash), &job[int, int]{}, <-s.Work(), machine.Outcome{Signal: machine.Succeeded})
		if n := settled(); n != 0 {
			t.Errorf("%d settled before the result was out", n)
		}
		<-r.results
		if n := settled(); n != 1 {
			t.Errorf("%d settled when the result was out", n)
		}
		c.Close()
		<-c.Done()
	})
}

// An empty input is a run that went well.
func TestRunOfNothing(t *testing.T) {
	results, sum, err := proved(t.Context(), t, numbers(0), never(t))
	if err != nil || len(results) != 0 || sum.Items() != 0 {
		t.Error(err, results, sum)
	}
}

// A result tells what became of its item: a refusal used no attempt, a failure
// did, and the times add up to all that passed.
func TestResultFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := 0
		fn := func(ctx context.Context, i int) (int, error) {
			call++
			rec := provider.RecorderFrom(ctx)
			rec.Usage(provider.Usage{InputTokens: 10, OutputTokens: int64(call)})
			switch call {
			case 1:
				pause(ctx, time.Second)
				return 0, &provider.Error{Kind: provider.Server}
			case 2:
				pause(ctx, 100*time.Millisecond)
				return 0, RetryAfter(2*time.Second, errors.New("slow down"))
			}
			pause(ctx, 3*time.Second)
			rec.Response(200, http.Header{"X-Request-Id": {"req_1"}})
			rec.Finish("stop")
			return 42, nil
		}
		results, sum, err := proved(t.Context(), t, numbers(1), fn, exact)
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Value != 42 || r.Err != nil || r.Attempts != 2 || r.Calls != 3 || r.Status != 200 || r.RequestID != "req_1" || r.Finish != "stop" {
			t.Errorf("%+v", r)
		}
		if want := (provider.Usage{InputTokens: 30, OutputTokens: 6}); r.Usage != want || sum.Usage != want {
			t.Errorf("usage %+v, in sum %+v", r.Usage, sum.Usage)
		}
		if r.Queued != 0 || r.Latency != 3*time.Second || r.Waited != sum.Elapsed-4100*time.Millisecond || r.Waited <= 2*time.Second {
			t.Errorf("queued %v, latency %v, waited %v of %v", r.Queued, r.Latency, r.Waited, sum.Elapsed)
		}
		if n := sum.Counters; n.Cooldowns != 1 || n.Throttled != 1 || n.HandedOver != 2 || n.Delayed != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// Queued is the time before the first call, and only that.
func TestQueuedIsTheTimeBeforeTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results, _, err := proved(t.Context(), t, numbers(5), takes(time.Minute), WithLimits(limiter.Limits{RPM: 60}))
		for i, r := range results {
			if err != nil || r.Queued != time.Duration(i)*time.Second || r.Waited != 0 || r.Latency != time.Minute {
				t.Errorf("item %d: queued %v, waited %v, latency %v, %v", i, r.Queued, r.Waited, r.Latency, err)
			}
		}
	})
}
