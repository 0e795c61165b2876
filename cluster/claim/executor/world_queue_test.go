package executor

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
)

// grave is the place where the actions of a dead worker end.
type grave struct {
	once  sync.Once
	ended chan struct{}
}

var errDead = errors.New("it is dead")

func (g *grave) dead() error {
	select {
	case <-g.ended:
		return errDead
	default:
		return nil
	}
}

// queue is the queue, by its word.
type queue struct {
	mu     sync.Mutex
	chunks []job.Chunk
	given  map[string]time.Time // when it comes back; missing: at once
	done   int
}

func (q *queue) put(chunks ...job.Chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chunks = append(q.chunks, chunks...)
}

func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.chunks)
}

func (q *queue) take() *job.Chunk {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.chunks {
		c := q.chunks[i]
		if time.Now().Before(q.given[c.String()]) {
			continue
		}
		q.given[c.String()] = time.Now().Add(testAckWait)
		return &c
	}
	return nil
}

func (q *queue) later(c job.Chunk, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.given[c.String()] = time.Now().Add(d)
}

func (q *queue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.given)
}

func (q *queue) end(c job.Chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.chunks {
		if q.chunks[i] == c {
			q.chunks = append(q.chunks[:i:i], q.chunks[i+1:]...)
			q.done++
			return
		}
	}
}

type mortalQueue struct {
	q    *queue
	dead *grave
}

func (m mortalQueue) Fetch(ctx context.Context, _ string) (Delivery, bool, error) {
	for range 20 {
		if err := m.dead.dead(); err != nil {
			return nil, false, err
		}
		if c := m.q.take(); c != nil {
			return delivery{m, *c}, true, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	return nil, false, nil
}

type delivery struct {
	m mortalQueue
	c job.Chunk
}

func (d delivery) Body() []byte {
	text, err := json.Marshal(d.c)
	if err != nil {
		panic(err)
	}
	return text
}

func (d delivery) word(f func()) error {
	if err := d.m.dead.dead(); err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond)
	f()
	return nil
}

func (d delivery) Working(context.Context) error {
	return d.word(func() { d.m.q.later(d.c, testAckWait) })
}
func (d delivery) Done(context.Context) error { return d.word(func() { d.m.q.end(d.c) }) }
func (d delivery) Return(_ context.Context, after time.Duration) error {
	return d.word(func() { d.m.q.later(d.c, after) })
}

// peers is the bus between workers.
type peers struct {
	mu    sync.Mutex
	alive map[string]*Executor
	done  []job.Chunk
	feet  []string
}

func (p *peers) join(who string, x *Executor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive[who] = x
}

func (p *peers) leave(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, who)
}

func (p *peers) who(who string) *Executor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive[who]
}

func (p *peers) Holds(_ context.Context, who string, c claim.Chunk) (holds, answered bool, err error) {
	x := p.who(who)
	if x == nil {
		return false, false, nil
	}
	return x.Answer(c), true, nil
}

func (p *peers) Tell(_ context.Context, who string, c claim.Chunk, n claim.Name) error {
	if x := p.who(who); x != nil {
		x.Told(c, n)
	}
	return nil
}

func (p *peers) SayDone(c job.Chunk, footer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, c)
	p.feet = append(p.feet, string(footer))
}
