package purse

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/limiter"
)

// ErrSpent says that the cap does not cover a call: the store has no note left, and the purse holds less than the call
// may cost.
var ErrSpent = errors.New("purse: the cap does not cover the next call")

// Config says whose money a purse holds. All fields are needed.
type Config struct {
	Store store.Store
	Job   string
	Who   string // its worker, for people who look into the store
	// Caps returns the caps of the job: the first, and each to which it was raised. most is the one that holds: the latest,
	// or less if its user has lowered it. It is asked at each draw.
	Caps func(context.Context) (all []limiter.Money, most limiter.Money, err error)
}

// A Purse is one worker's money for one job. Any goroutine may call its methods. Create one with [New].
type Purse struct {
	cfg Config

	mu       sync.Mutex
	left     limiter.Money // negative if calls have cost more than was reserved for them
	reserved limiter.Money
	flying   int           // reservations
	drawn    chan struct{} // closed when the draw under way has ended; nil: there is none

	// Only the goroutine that draws uses it.
	notes notes

	answers answers
}

// New returns an empty purse.
func New(c Config) *Purse { return &Purse{cfg: c} }

// Reserve sets aside what a call may cost, and draws money for it if needed. The error is [ErrSpent] if there is no more;
// final is then true if no call is in flight that may bring any of it back. Other errors are those of the store and of
// ctx.
func (p *Purse) Reserve(ctx context.Context, price limiter.Money) (final bool, err error) {
	for {
		p.mu.Lock()
		switch wait := p.drawn; {
		case price == 0 || price <= p.left:
			p.left -= price
			p.reserved = p.reserved.Plus(price)
			p.flying++
			p.mu.Unlock()
			return false, nil
		case wait != nil:
			p.mu.Unlock()
			select {
			case <-wait:
			case <-ctx.Done():
				return false, ctx.Err()
			}
		default:
			p.drawn = make(chan struct{})
			p.mu.Unlock()
			note, err := p.notes.draw(ctx, &p.cfg)
			if final := p.add(note); err != nil {
				return final, fmt.Errorf("job %s: %w", p.cfg.Job, err)
			}
		}
	}
}

// add ends a draw, and reports whether no call is in flight.
func (p *Purse) add(note limiter.Money) (quiet bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = p.left.Plus(note)
	close(p.drawn)
	p.drawn = nil
	return p.flying == 0
}

// Settle ends a reservation: the call has cost so much. For a call that may be billed, although no answer came, that is
// the reservation.
func (p *Purse) Settle(price, spent limiter.Money) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = p.left.Plus(price - spent)
	p.reserved -= price
	p.flying--
}

// Answers whose length nothing bounds.
const (
	// unboundedFirst is the length in tokens that is reserved for such an answer before answersFew have come: the most
	// that many models write.
	unboundedFirst = 16_384
	answersFew     = 100
	// unboundedTimes multiplies the length of the longest such answer so far to get the length that is reserved for
	// the next one.
	unboundedTimes = 1.5
)

// answers remembers how long answers are.
type answers struct {
	count   int
	longest int64
}

// Answered notes the length in tokens of an answer whose length nothing bounded.
func (p *Purse) Answered(tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers.count++
	p.answers.longest = max(p.answers.longest, tokens)
}

// Unbounded returns the tokens to reserve for an answer whose length nothing bounds.
func (p *Purse) Unbounded() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers.count < answersFew {
		return unboundedFirst
	}
	return int64(unboundedTimes * float64(p.answers.longest))
}
