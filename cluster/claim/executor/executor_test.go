package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"go.uber.org/goleak"
)

// One worker makes the parts that one process makes lines of, calls each item once, says so, and
// leaves nothing else behind.
func TestOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5, 100)
		k := w.start("w1", nil)
		w.finish(time.Minute)
		k.drain()
		w.check(0)
		if left := w.journals(); len(left) > 0 || len(w.peers.done) != 5 || w.peers.feet[0] == "" {
			t.Errorf("%d done, %q; journals are left: %q", len(w.peers.done), w.peers.feet, left)
		}
	})
}

// Workers that die at any moment, and a queue that forgets who has what, cost what was in flight at
// the deaths, and no more.
func TestWorkersDie(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng, lives, flying := randomOf(seed), 0, 0
				w := newWorld(t, 30, 60)
				var workers []*worker
				born := func() *worker {
					lives++
					return w.start(fmt.Sprintf("w%d", lives), nil)
				}
				for range 3 {
					workers = append(workers, born())
				}
				for range 8 {
					time.Sleep(time.Duration(rng.IntN(2500)) * time.Millisecond)
					i := rng.IntN(len(workers))
					flying += workers[i].die()
					workers[i] = born()
					if rng.IntN(2) == 0 {
						w.queue.forget()
					}
				}
				w.finish(10 * time.Minute)
				for _, k := range workers {
					k.drain()
				}
				w.check(flying)
				t.Logf("%d repeated, %d in flight at the kills", w.repeats(), flying)
			})
		})
	}
}

// A queue that gives everything out again, over and over, costs nothing while workers live.
func TestQueueForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 20, 60)
		var workers []*worker
		for n := range 3 {
			workers = append(workers, w.start(fmt.Sprintf("w%d", n), nil))
		}
		for range 10 {
			time.Sleep(700 * time.Millisecond)
			w.queue.forget()
		}
		w.finish(10 * time.Minute)
		for _, k := range workers {
			k.drain()
		}
		w.check(0)
	})
}

// A worker that drains saves what flies, and is gone as soon as that is there; the next one goes on
// behind it.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, 100)
		k := w.start("w1", nil)
		time.Sleep(3 * time.Second)
		began := time.Now()
		k.drain()
		if d := time.Since(began); d > 2*latency+time.Second {
			t.Errorf("it drains for %v", d)
		}
		before := w.called()
		if before == 0 || w.queue.left() == 0 {
			t.Fatalf("%d calls, %d chunks left: it was drained at no time that tests anything", before, w.queue.left())
		}
		w.start("w2", nil).doAll()
		w.check(0)
	})
}

// doAll is the only worker from now on.
func (k *worker) doAll() {
	k.w.t.Helper()
	k.w.finish(10 * time.Minute)
	k.drain()
	if x := k.x; len(x.states)+len(x.deliveries)+len(x.begins)+x.waiting+x.flying > 0 {
		k.w.t.Errorf("it keeps %d claims, %d deliveries, %d calls, %d bytes, %d tasks", len(x.states), len(x.deliveries), len(x.begins), x.waiting, x.flying)
	}
}

// What is answered when a worker is abandoned is saved: its journal ends behind it.
func TestAbandoned(t *testing.T) {
	for n := range 10 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 6, 100)
			k := w.start("w1", nil)
			time.Sleep(2*time.Second + time.Duration(n)*7*time.Millisecond)
			flying := 0
			w.note(func() {
				for _, until := range w.flying["w1"] {
					if until.IsZero() {
						flying++
					}
				}
			})
			k.kill()
			<-k.gone
			w.peers.leave("w1")
			if !errors.Is(k.err, context.Canceled) {
				t.Errorf("%v", k.err)
			}
			w.start("w2", nil).doAll()
			w.check(flying)
		})
	}
}

// Results that come at once share a sync, and none waits for long.
func TestResultsShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, syncs := newWorld(t, 2, 100), 0
		w.fate = func(it *promptfile.Item, _ int) (time.Duration, error) {
			return latency + time.Duration(it.Line%9)*time.Millisecond, nil
		}
		w.start("w1", faulty{before: func(op, _ string) error {
			if op == "sync" {
				syncs++
			}
			return nil
		}}.in).doAll()
		w.check(0)
		if most := 200 / 4; syncs > most || syncs < 200/16 {
			t.Errorf("%d syncs, want %d at most", syncs, most)
		}
	})
}

// A claim that is given up while its journal is being made leaves none.
func TestTakenWhileNaming(t *testing.T) {
	for name, lags := range map[string]func(func(op, _ string) error) faulty{
		"before it is there": func(lag func(op, _ string) error) faulty { return faulty{before: lag} },
		"after that":         func(lag func(op, _ string) error) faulty { return faulty{after: lag} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, naming := newWorld(t, 1, 100), 0
				k := w.start("w1", lags(func(op, _ string) error {
					if naming++; op == "append" && w.called() == 0 {
						time.Sleep(2 * time.Second)
					}
					return nil
				}).in)
				time.Sleep(time.Second)
				k.x.ClaimedByOther(NameOf(&w.chunks[0]), claim.Name{Turn: 9, Who: "another"})
				time.Sleep(2 * time.Second)
				if left := w.journals(); len(left) > 0 || naming == 0 || w.called() > 0 {
					t.Errorf("journals are left: %q", left)
				}
				k.doAll()
				w.check(0)
			})
		})
	}
}

// Whose part another has made meanwhile, and deleted the journals, is done.
func TestPartIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 100)
		once := false
		k := w.start("w1", faulty{before: func(op, name string) error {
			if op != "create" || once {
				return nil
			}
			once = true
			w.start("w2", func(c *Config) { c.Peers = &peers{alive: map[string]*Executor{}} }) // it reaches nobody
			w.queue.forget()
			for there := false; !there; time.Sleep(100 * time.Millisecond) {
				there, _ = isThere(t.Context(), w.store, partName(&w.chunks[0]))
			}
			time.Sleep(time.Minute)
			return nil
		}}.in)
		k.doAll()
		w.check(100)
		for _, o := range w.workers[1:] {
			o.drain()
		}
	})
}

var (
	errServer  = &provider.Error{Kind: provider.Server, Status: 500}
	errInvalid = &provider.Error{Kind: provider.Invalid, Status: 400}
)

// fails lets every 7th item fail for good, and of every 5th the first two calls.
func fails(it *promptfile.Item, n int) (time.Duration, error) {
	switch {
	case it.Line%7 == 0:
		return latency, errInvalid
	case it.Line%5 == 0 && n <= 2:
		return latency, errServer
	}
	return latency, nil
}

// Calls that fail are made again; items that fail for good are in the part as that.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 100)
		w.fate = fails
		w.start("w1", nil).doAll()
		w.check(0)
		for line := range 400 {
			if line++; line%37 == 0 {
				continue
			}
			want := 1
			if line%5 == 0 && line%7 != 0 {
				want = 3
			}
			if got := w.calls[w.key(line)]; got != want {
				t.Errorf("line %d is called %d times, want %d", line, got, want)
			}
		}
	})
}

// What is tried again is the stream's to say: an error that looks final may not be.
func TestStreamTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 30)
		w.fate = func(_ *promptfile.Item, n int) (time.Duration, error) {
			if n == 1 {
				return latency, errInvalid
			}
			return latency, nil
		}
		w.start("w1", nil, batch.WithClassifier(func(error) batch.Kind { return provider.Server })).doAll()
		w.check(0)
		if n := w.called(); n != 2*30 {
			t.Errorf("%d calls", n)
		}
	})
}

// key is that of a line's item.
func (w *world) key(line int) string {
	for req, err := range w.read(w.t.Context(), w.whole()) {
		if err == nil && req.Line == line {
			return req.Key
		}
	}
	w.t.Fatalf("there is no item in line %d", line)
	return ""
}

// Items that wait to be called again do not keep a worker from draining.
func TestDrainDoesNotWaitForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 30)
		w.fate = func(_ *promptfile.Item, n int) (time.Duration, error) {
			if n == 1 {
				return latency, &provider.Error{Kind: provider.Throttled, Status: 429, RetryAfter: 5 * time.Minute, HasRetryAfter: true}
			}
			return latency, nil
		}
		drain := make(chan struct{})
		k := w.start("w1", nil, batch.WithDrain(drain))
		time.Sleep(3 * time.Second)
		began := time.Now()
		k.x.Drain()
		<-k.ran
		if d := time.Since(began); d > time.Minute {
			t.Errorf("it drains for %v", d)
		}
		close(drain)
		k.drain()
		w.fate = nil
		w.start("w2", nil).doAll()
		w.check(0)
	})
}

// A round has what failed in the one before, and nothing else.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 100)
		w.fate = fails
		k := w.start("w1", nil)
		w.finish(time.Minute)
		w.fate = func(it *promptfile.Item, _ int) (time.Duration, error) {
			if it.Line == 14 {
				return latency, errInvalid
			}
			return latency, nil
		}
		before := w.called()
		for round := 1; round <= 2; round++ {
			for _, c := range w.chunks {
				c.Round = round
				w.queue.put(c)
			}
			w.finish(time.Minute)
		}
		k.drain()
		sums := w.sums(1)
		if n := w.called() - before; n != 28+1 || sums.Lines != 28 || sums.Failed != 1 || sums.Skipped != 0 {
			t.Errorf("%d calls, want 28 and the one of the second round; in round 1 %+v", n, sums)
		}
		if sums := w.sums(2); sums.Lines != 1 || sums.Failed != 1 {
			t.Errorf("in round 2 %+v", sums)
		}
		if left := w.journals(); len(left) > 0 {
			t.Errorf("journals are left: %q", left)
		}
	})
}

// A canceled job ends within its calls. When it goes on, answered items are not asked again.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 100)
		k := w.start("w1", nil)
		time.Sleep(3 * time.Second)
		k.x.Cancel(testJob)
		time.Sleep(2 * latency)
		before := w.called()
		time.Sleep(time.Minute)
		if n := w.called(); n != before || n == 0 || w.queue.left() > 0 {
			t.Errorf("%d calls before, %d a minute later; %d chunks are left", before, n, w.queue.left())
		}
		k.x.Resume(testJob)
		for _, c := range w.chunks {
			w.queue.put(c)
		}
		k.doAll()
		w.check(0)
	})
}

// A job that opens only after its claim has ended is closed.
func TestALateJobIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 50)
		late := func(c *Config) {
			open := c.Open
			c.Open = func(ctx context.Context, job string) (*Job, error) {
				time.Sleep(time.Minute)
				return open(ctx, job)
			}
		}
		k := w.start("w1", late)
		time.Sleep(30 * time.Second)
		k.x.Cancel(testJob)
		time.Sleep(time.Minute)
		k.drain()
		if w.opened == 0 || w.opened != w.closed {
			t.Errorf("opened too late: %d jobs are opened, %d closed", w.opened, w.closed)
		}
	})
}

// A worker that learns of a later claim of its chunk lets its calls in flight end, and makes no other call.
func TestTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 100)
		k := w.start("w1", nil)
		time.Sleep(time.Second)
		c := NameOf(&w.chunks[0])
		if !k.x.Answer(c) || k.x.Answer(claim.Chunk{Job: testJob, Number: 1}) {
			t.Error("it does not know what it holds")
		}
		k.x.ClaimedByOther(c, claim.Name{Turn: 9, Who: "another"})
		time.Sleep(2 * latency)
		before := w.called()
		if k.x.Answer(c) {
			t.Error("it holds what was taken")
		}
		time.Sleep(testAckWait - 3*time.Second)
		if n := w.called(); n != before || n == 0 {
			t.Errorf("%d calls before, %d later", before, n)
		}
		k.doAll()
		w.check(0)
	})
}

// A stream that takes no more drains the executor.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 100)
		drain := make(chan struct{})
		k := w.start("w1", nil, batch.WithDrain(drain))
		time.Sleep(2 * time.Second)
		close(drain)
		<-k.gone
		k.kill()
		w.peers.leave("w1")
		if k.err != nil {
			t.Error(k.err)
		}
		w.start("w2", nil).doAll()
		w.check(0)
	})
}

// The stream learns that refused calls did not leave. They teach its lanes nothing, and are not tried
// again.
func TestRefusedCallsDidNotLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 100)
		var refusedCalls int
		k := w.start("w1", nil, batch.WithCalls(func(c batch.Call) {
			if errors.Is(c.Err, ErrRefused) {
				w.note(func() { refusedCalls++ })
				if c.Again || c.Kind != provider.Canceled || !provider.Unsent(c.Err) {
					t.Errorf("%+v", c)
				}
			}
		}))
		time.Sleep(time.Second)
		k.x.Cancel(testJob)
		time.Sleep(time.Second)
		k.drain()
		if refusedCalls == 0 || !k.sum.Proves() || k.streamErr != nil {
			t.Errorf("%d are refused, %+v, %v", refusedCalls, k.sum, k.streamErr)
		}
	})
}

// A line has all that the run knows of its item: no field is dropped on the way.
func TestLinesAreAllReported(t *testing.T) {
	var reported promptfile.Result
	j := &Job{Line: func(r *promptfile.Result) (journal.Line, bool) { reported = *r; return journal.Line{}, false }}
	given := Result{
		Index: 1, Item: &Item{Item: &promptfile.Item{}, job: j}, Value: provider.Reply{Status: 200}, Err: context.Canceled, Pool: "p", Lane: "l",
		Attempts: 2, Calls: 3, Usage: provider.Usage{InputTokens: 4}, Finish: "stop", Status: 200, RequestID: "r",
		Failures: []batch.Failure{{Calls: 1, Doubtful: provider.Doubtful{Calls: 1}}}, Queued: 6, Waited: 7, Latency: 8,
	}
	(&Executor{}).lineOf(&given)
	from, to := reflect.ValueOf(given), reflect.ValueOf(reported)
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if from.Field(i).IsZero() || to.FieldByName(name).IsZero() {
			t.Errorf("%s is not told", name)
		}
		if name != "Item" && !reflect.DeepEqual(from.Field(i).Interface(), to.FieldByName(name).Interface()) {
			t.Errorf("%s: %v, not %v", name, to.FieldByName(name), from.Field(i))
		}
	}
}

// A part is made if nothing is missing, and once. What is gone from the journals somebody else may have
// joined; if nobody has, the chunk is not done.
func TestJoin(t *testing.T) {
	w := newWorld(t, 1, 40)
	a, b, c := claim.Name{Turn: 1, Who: "a", Claim: 1}, claim.Name{Turn: 2, Who: "b", Claim: 1}, claim.Name{Turn: 3, Who: "c", Claim: 1}
	w.journal(a, func(line int) bool { return line <= 20 })
	w.journal(b, func(line int) bool { return line >= 10 })
	j := partJoin{store: w.store, chunk: w.chunks[0], job: w.job("w"), plan: w.plan()}
	for _, step := range []struct {
		journals []claim.Name
		want     claim.Outcome
	}{
		{journals: []claim.Name{a}, want: claim.Incomplete},
		{journals: []claim.Name{a, c}, want: claim.Incomplete}, // c is not there
		{journals: []claim.Name{c, a, b}, want: claim.Made},
		{journals: []claim.Name{a, b}, want: claim.Taken},
		{journals: []claim.Name{a, c}, want: claim.Taken},
	} {
		j.journals = step.journals
		sums, got, err := j.make(t.Context())
		if got != step.want || err != nil {
			t.Errorf("of %v: %v, %v, want %v", step.journals, got, err, step.want)
		}
		if got == claim.Made && (sums.Lines != 40 || sums.Skipped != 1) {
			t.Errorf("%+v", sums)
		}
	}
	if got, want := w.results(), w.alone(); got != want {
		t.Error(firstDifference(got, want))
	}
	fault := func(string, string) error { return errFault }
	j.store, j.journals = faulty{Store: w.store, before: fault}, []claim.Name{a, b}
	if _, got, err := j.make(t.Context()); got == claim.Made || !errors.Is(err, errFault) {
		t.Errorf("where nothing can be read: %v, %v", got, err)
	}
}

// journal writes the lines of some items of the first chunk.
func (w *world) journal(n claim.Name, which func(line int) bool) {
	w.t.Helper()
	j := must.Get(store.CreateJournal(w.t.Context(), w.store, journalName(&w.chunks[0], n), store.JournalConfig{}))(w.t)
	maker := promptfile.NewMaker(promptfile.Config{Checked: true})
	var sums promptfile.Sums
	for req, err := range w.read(w.t.Context(), w.chunks[0]) {
		if err != nil || !which(req.Line) {
			continue
		}
		it := maker.Item(req)
		l, _ := maker.Line(&promptfile.Result{Item: it, Value: w.reply(it), Lane: "m", Attempts: 1}, &sums)
		must.Do(w.t, j.Write(w.t.Context(), lineText(&l)))
	}
	must.Do(w.t, j.Close(w.t.Context()))
}

// plan is that of the first chunk.
func (w *world) plan() (p plan) {
	for _, err := range w.read(w.t.Context(), w.chunks[0]) {
		var bad *prompts.LineError
		if errors.As(err, &bad) {
			p.note(bad, func(string) bool { return true })
			continue
		}
		p.items++
	}
	return p
}

// What an item costs a worker on top of a stream, where calls take no time and a folder is the store.
func BenchmarkItem(b *testing.B) {
	w := newWorld(b, b.N/1000+1, 1000)
	w.fate = func(*promptfile.Item, int) (time.Duration, error) { return 0, nil }
	b.ReportAllocs()
	b.ResetTimer()
	k := w.start("w1", func(c *Config) { c.Claim.Concurrency = 512 })
	for w.queue.left() > 0 {
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	k.drain()
}

// And what the stream costs without it.
func BenchmarkStreamAlone(b *testing.B) {
	w := newWorld(b, b.N/1000+1, 1000)
	w.fate = func(*promptfile.Item, int) (time.Duration, error) { return 0, nil }
	j := w.job("w1")
	items := func(yield func(*promptfile.Item) bool) {
		for req, err := range j.Read(b.Context(), w.whole()) {
			if err == nil && !yield(j.Item(req)) {
				return
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for res, err := range batch.Stream(b.Context(), items, j.Call, batch.WithPlainLaw(), batch.WithConcurrency(512)) {
		if err != nil {
			b.Fatal(err)
		}
		j.Line(&res)
	}
}

func TestMain(m *testing.M) {
	if role := os.Getenv(childVariable); role != "" {
		childMain(role)
		return
	}
	goleak.VerifyTestMain(m)
}
