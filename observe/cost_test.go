package observe

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/provider"
)

var (
	someCall = batch.Call{
		Worker: 3, Lane: "openai/gpt-4o-mini", Pool: "gpt-4o-mini", Attempt: 1, Begun: start, Latency: 2345 * time.Millisecond,
		Status: 200, Usage: provider.Usage{InputTokens: 700, OutputTokens: 200}, Finish: "stop",
	}
	someEnd = batch.End{
		Worker: 3, Lane: "openai/gpt-4o-mini", Attempts: 1, Calls: 1, Usage: provider.Usage{InputTokens: 700, OutputTokens: 200}, Finish: "stop",
	}
)

// Neither a call nor an item that is answered costs an allocation, nor does a call that is
// refused or breaks, nor one on a lane that has no name of its own.
func TestHooksAllocateNothing(t *testing.T) {
	rec := New(Config{Price: func(any, string, provider.Usage) (float64, bool) { return 1, true }})
	in := "prompt"
	end := someEnd
	end.In = &in
	length := end
	length.Finish = "length"
	refused, broke, other := someCall, someCall, someCall
	refused.Err, refused.Kind = errors.New("refused"), batch.Throttled
	broke.Err = fmt.Errorf("wrapped: %w", refused.Err)
	hooks := map[string]func(){
		"an answer": func() { rec.countCall(&someCall) }, "a refusal": func() { rec.countCall(&refused) }, "a call that broke": func() { rec.countCall(&broke) },
		"an item": func() { rec.countEnd(&end) }, "one that was cut off": func() { rec.countEnd(&length) }, "a nameless lane": func() { rec.countCall(&other) },
	}
	rec.countCall(&someCall)
	for k := range 2 * MaxLanes {
		other.Lane = fmt.Sprint("lane ", k)
		rec.countCall(&other)
	}
	for name, hook := range hooks {
		hook()
		if n := testing.AllocsPerRun(1000, hook); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// What many workers count at once is all there, while others look.
func TestWorkersCountTogether(t *testing.T) {
	rec := New(Config{})
	const workers, each = 32, 500
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for k := range each {
				call, end := someCall, someEnd
				call.Worker, end.Worker = w, w
				call.Lane = fmt.Sprint("lane ", (w+k)%40)
				end.Lane = call.Lane
				rec.countCall(&call)
				rec.countEnd(&end)
			}
		})
	}
	group.Go(func() {
		for k := range 50 {
			rec.event(batch.Event{Status: &batch.Status{At: start.Add(time.Duration(k) * time.Second)}})
			rec.Snapshot(start)
		}
	})
	group.Wait()
	rec.event(batch.Event{Summary: &batch.Summary{Ran: time.Hour}})
	p := rec.Snapshot(start)
	sum := 0
	for _, l := range p.Lanes {
		sum += l.Answered
	}
	if p.Answered != workers*each || p.Calls != workers*each || sum != workers*each || len(p.Lanes) != MaxLanes+1 || p.Spent.InputTokens != 700*workers*each {
		t.Errorf("%d items, %d calls, %d on %d lanes", p.Answered, p.Calls, sum, len(p.Lanes))
	}
}

// After a week with 40 lanes a recorder holds less than 2 MiB.
func TestRecorderIsBounded(t *testing.T) {
	lanes := make([]machine.LaneStatus, 40)
	var work []Work
	for k := range lanes {
		lanes[k] = learned(fmt.Sprint("provider/model number ", k), 10+float64(k)/7, 1e5/float64(k+3))
		work = append(work, Work{Lane: lanes[k].Name, Items: 1e6})
	}
	before := heap()
	rec := New(Config{Total: 40e6, Work: work})
	now, ledger := start, batch.Ledger{}
	const week = 7 * 24 * time.Hour
	for step := 40 * time.Minute / time.Duration(race.Fewer(10)); now.Sub(start) < week; now = now.Add(step) {
		ledger[1+int(now.Unix()/600)%20] += step
		for k := range lanes {
			call, end := someCall, someEnd
			call.Worker, call.Lane, end.Worker, end.Lane = k, lanes[k].Name, k, lanes[k].Name
			call.Latency = time.Duration(1+now.Unix()*7919%1000) * time.Duration(k+1) * 5 * time.Millisecond
			rec.countCall(&call)
			rec.countEnd(&end)
		}
		for k := range 3 {
			rec.countEnd(&batch.End{Lane: lanes[k].Name, Err: fmt.Errorf("failure %s of its own", time.Duration(now.Unix()))})
		}
		s := batch.Status{At: now, Lanes: lanes[:16], Known: 40}
		s.Run.Ledger, s.Run.Bound, s.Run.InFlight, s.Run.Held = ledger, machine.BoundTokens, 31, 1024
		rec.event(batch.Event{Status: &s})
	}
	grown := heap() - before
	runtime.KeepAlive(lanes)
	p := rec.Snapshot(now)
	t.Logf("%d KiB, %d items", grown>>10, p.Answered)
	if grown > 2<<20 {
		t.Errorf("%d KiB", grown>>10)
	}
	if p.Answered == 0 || len(p.Lanes) != MaxLanes+1 || p.OfLanes != 40 {
		t.Errorf("%d items, %d lanes of %d", p.Answered, len(p.Lanes), p.OfLanes)
	}
	runtime.KeepAlive(rec)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What a call and its item cost, with as many workers as there are processors.
func BenchmarkHooks(b *testing.B) {
	b.Run("call", func(b *testing.B) {
		rec := New(Config{})
		b.ReportAllocs()
		for b.Loop() {
			rec.countCall(&someCall)
		}
	})
	b.Run("end", func(b *testing.B) {
		rec := New(Config{})
		b.ReportAllocs()
		for b.Loop() {
			rec.countEnd(&someEnd)
		}
	})
	b.Run("at once", func(b *testing.B) {
		rec := New(Config{})
		var worker sync.Mutex
		next := 0
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			worker.Lock()
			call := someCall
			call.Worker, next = next, next+1
			worker.Unlock()
			for pb.Next() {
				rec.countCall(&call)
			}
		})
	})
}

// What a snapshot costs the run: nothing; and the recorder: this.
func BenchmarkStatus(b *testing.B) {
	lanes := make([]machine.LaneStatus, 16)
	for k := range lanes {
		lanes[k] = learned(fmt.Sprint("lane ", k), 10, 1e5)
	}
	w := newWorld(Config{})
	for b.Loop() {
		w.goes(1, machine.BoundRequests, statusOf(64, lanes...), 10, 10)
	}
}
