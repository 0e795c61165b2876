package executor

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// What is no chunk goes back, and keeps nobody from the others.
func TestOtherDeliveries(t *testing.T) {
	for _, body := range []string{"", "{", `{"job":"../x"}`, `{"job":"a","n":-1}`, `{"job":"a","round":-1}`, `[]`} {
		synctest.Test(t, func(t *testing.T) {
			w, returned := newWorld(t, 1, 20), time.Duration(0)
			k := w.start("w1", func(c *Config) {
				c.Queue = &otherQueue{Queue: c.Queue, body: body, returned: &returned}
			})
			k.doAll()
			w.check(0)
			if returned != testAckWait {
				t.Errorf("%q goes back for %v", body, returned)
			}
		})
	}
}

type otherQueue struct {
	Queue
	body     string
	given    bool
	returned *time.Duration
}

func (q *otherQueue) Fetch(ctx context.Context, job string) (Delivery, bool, error) {
	if q.given {
		return q.Queue.Fetch(ctx, job)
	}
	q.given = true
	return otherDelivery{q: q}, true, nil
}

type otherDelivery struct {
	Delivery
	q *otherQueue
}

func (d otherDelivery) Body() []byte { return []byte(d.q.body) }
func (d otherDelivery) Return(_ context.Context, after time.Duration) error {
	*d.q.returned = after
	return nil
}

// A job that cannot be opened, and a chunk that cannot be read, are tried again.
func TestCannotRead(t *testing.T) {
	for _, gone := range []error{errFault, store.ErrMissing, store.ErrChanged} { // whatever it is: of the input, not of a journal
		synctest.Test(t, func(t *testing.T) {
			w, opens, reads := newWorld(t, 2, 50), 0, 0
			k := w.start("w1", func(c *Config) {
				open := c.Open
				c.Open = func(ctx context.Context, name string) (*Job, error) {
					if opens++; opens <= 2 {
						return nil, gone
					}
					j, err := open(ctx, name)
					read := j.Read
					j.Read = func(ctx context.Context, c job.Chunk) iter.Seq2[prompts.Request, error] {
						return func(yield func(prompts.Request, error) bool) {
							if reads++; reads > 2 {
								read(ctx, c)(yield)
								return
							}
							some := 0
							for req, err := range read(ctx, c) {
								if some++; some == 30 {
									yield(prompts.Request{}, gone)
									return
								}
								if !yield(req, err) {
									return
								}
							}
						}
					}
					return j, err
				}
			})
			k.doAll()
			w.check(0)
		})
	}
}

// The lines of a journal that were torn or damaged count for nothing; those that are whole are done.
func TestDamagedJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 30)
		name := journalName(&w.chunks[0], claim.Name{Turn: 1, Who: "dead"})
		j := must.Get(store.CreateJournal(t.Context(), w.store, name, store.JournalConfig{}))(t)
		maker, whole := promptfile.NewMaker(promptfile.Config{Checked: true}), 0
		var sums promptfile.Sums
		for req, err := range w.read(t.Context(), w.chunks[0]) {
			if err != nil {
				t.Fatal(err)
			}
			it := maker.Item(req)
			l, _ := maker.Line(&promptfile.Result{Item: it, Value: w.reply(it), Lane: "m", Attempts: 1}, &sums)
			line := journal.AppendLine(nil, &l)
			line = line[:len(line)-1]
			switch req.Line % 3 {
			case 0:
				line[len(line)/2] ^= 1
			case 1:
				line = line[:len(line)/2]
			default:
				whole++
			}
			must.Do(t, j.Write(t.Context(), line))
		}
		must.Do(t, j.Close(t.Context()))
		w.start("w1", nil).doAll()
		w.check(0)
		if n := w.called(); n != 30-whole || whole != 10 {
			t.Errorf("%d calls where %d lines are whole", n, whole)
		}
	})
}

// A result that no journal takes is a failure of its item.
func TestResultIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.said = strings.Repeat("x", 1<<10)
		w.start("w1", func(c *Config) { c.bounds.lineMost = 1 << 10 }).doAll()
		if sums := w.sums(0); sums.Failed != 1 || w.called() != 1 {
			t.Errorf("%d calls, %+v", w.called(), sums)
		}
	})
}

// A worker of which the queue hears nothing for long makes no call until it is sure again.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 600)
		cut := make(chan struct{})
		k := w.start("w1", func(c *Config) { c.Queue = cutQueue{c.Queue, &cut} })
		time.Sleep(time.Second)
		w.note(func() { close(cut) })
		time.Sleep(testAckWait)
		before := w.called()
		time.Sleep(beginTime / 2) // then the chunk goes back
		if n := w.called(); n != before || n == 0 || n > 450 {
			t.Errorf("%d calls before, and %d after a while of silence", before, n)
		}
		w.note(func() { cut = make(chan struct{}) })
		k.doAll()
		w.check(0)
	})
}

// cutQueue is one that hears nothing while the channel is closed.
type cutQueue struct {
	Queue
	cut *chan struct{}
}

func (q cutQueue) Fetch(ctx context.Context, job string) (Delivery, bool, error) {
	d, came, err := q.Queue.Fetch(ctx, job)
	return cutDelivery{d, q}, came, err
}

type cutDelivery struct {
	Delivery
	q cutQueue
}

func (d cutDelivery) Working(ctx context.Context) error {
	select {
	case <-*d.q.cut:
		<-ctx.Done()
		return ctx.Err()
	default:
		return d.Delivery.Working(ctx)
	}
}

// A call that is not let go in its time has not run: its chunk goes back, and it is no failure. If it is
// let go all the same, when nobody waits for that any more, it does not count as in flight for ever.
func TestDoubtOutlastsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 400)
		cut := make(chan struct{})
		k := w.start("w1", func(c *Config) { c.Queue = cutQueue{c.Queue, &cut} }, batch.WithAttemptTimeout(2*beginTime))
		time.Sleep(time.Second)
		w.note(func() { close(cut) })
		time.Sleep(time.Minute)
		w.note(func() { cut = make(chan struct{}) })
		k.doAll()
		w.check(0)
		if k.sum.Failed == 0 || k.sum.Counters.HandedOver > 0 || w.sums(0).Failed > 0 {
			t.Errorf("%+v", k.sum)
		}
	})
}

func TestConfig(t *testing.T) {
	good := Config{
		Claim: claim.Config{Who: "w"}, Store: faulty{}, Queue: &otherQueue{}, Peers: &peers{},
		Open: func(context.Context, string) (*Job, error) { return nil, errFault },
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"store": func(c *Config) { c.Store = nil }, "queue": func(c *Config) { c.Queue = nil },
		"peers": func(c *Config) { c.Peers = nil }, "open": func(c *Config) { c.Open = nil },
		"a dot": func(c *Config) { c.Claim.Who = "a.b" }, "no name": func(c *Config) { c.Claim.Who = "" },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no complaint", name)
		}
	}
}

// Words that come when all is over are for nobody.
func TestWordsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 20)
		k := w.start("w1", nil)
		k.doAll()
		k.x.Drain()
		k.x.Connected(time.Now())
		k.x.ClaimedByOther(claim.Chunk{Job: testJob}, claim.Name{Turn: 1, Who: "x"})
		if k.x.Answer(claim.Chunk{Job: testJob}) {
			t.Error("it holds something")
		}
		if items := slices.Collect(k.x.Items()); len(items) > 0 {
			t.Errorf("%d items", len(items))
		}
		it := &Item{Item: &promptfile.Item{}, job: &Job{}, claim: &claimState{}, stage: refused}
		if _, err := k.x.Call(t.Context(), it); !errors.Is(err, ErrRefused) || !provider.Unsent(err) {
			t.Errorf("%v", err)
		}
		k.x.Took(&Result{Item: it, Err: errUnsent})
	})
}
