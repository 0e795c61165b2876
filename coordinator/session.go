package coordinator

import (
	"context"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A Session is one run's side of the coordinator: items go in by Offer, grants
// come out of Work, and each grant is answered by Settle or HandOver.
//
//	Offer ─▶ ┄┄┄┄ ─▶ Work ─▶ the call ─▶ Settle
//	           ▲                 │
//	           └────HandOver─────┘
type Session struct {
	c    *Coordinator
	id   machine.RunID
	work chan machine.Grant
	news chan News // nil: it is muted

	leaveToOffer chan struct{} // holds one while the run may offer
	hasLeave     bool          // the loop's: that one was given and not used

	stranded chan struct{}
	cause    error // written before stranded is closed

	closed chan struct{}

	finish machine.Finish // these two are written before work is closed
	missed uint64
}

// Work yields the run's grants and is closed when the run is over: its input has ended and each
// of its items too. Its capacity is the most that the run's concurrency may be, and the machine never has more
// grants out than that. So sending a grant never makes the coordinator wait.
func (s *Session) Work() <-chan machine.Grant { return s.work }

// Offer gives items to the coordinator, which becomes the owner of the items and of the slice.
// It waits while the run has as many items waiting there as it may. Do not call it after
// EndInput.
func (s *Session) Offer(items []*machine.Item) {
	select {
	case <-s.leaveToOffer:
		s.c.send(message{question: offerQuestion{session: s, items: items}})
	case <-s.c.done:
	}
}

// EndInput says that the run will offer nothing more. Work is closed once all its items have
// ended.
func (s *Session) EndInput() { s.c.sendFact(machine.InputEnded(s.id)) }

// Settle reports that the item of a grant has ended.
func (s *Session) Settle(g machine.Grant, o machine.Outcome) { s.c.sendFact(machine.Settled(g, o)) }

// HandOver gives the item of a grant back, to be given out again. The caller
// must not touch it afterwards.
func (s *Session) HandOver(g machine.Grant, o machine.Outcome) {
	s.c.sendFact(machine.HandedOver(g, o))
}

// Withdraw says that an item of this run need not run any more. It comes out of Work with a
// verdict that says so, unless its call is under way, which is then its last. Withdraw may come
// before the offer of the item, or at the same time. The item remembers it, and may then be
// offered here and nowhere else.
func (s *Session) Withdraw(it *machine.Item) { s.c.sendFact(machine.Withdrawn(it)) }

// Pause stops grants to this run until Resume.
func (s *Session) Pause() { s.c.sendFact(machine.Paused(s.id)) }

// Resume takes Pause back.
func (s *Session) Resume() { s.c.sendFact(machine.Resumed(s.id)) }

// SetConcurrency changes the ceiling on the run's calls in flight; see [machine.ConcurrencyChanged].
func (s *Session) SetConcurrency(n int) { s.c.sendFact(machine.ConcurrencyChanged(s.id, n)) }

// SetBudget changes the run's budget; see [machine.BudgetChanged].
func (s *Session) SetBudget(most limiter.Money) { s.c.sendFact(machine.BudgetChanged(s.id, most)) }

// DefinePool gives the run one more pool; see [machine.PoolDefined].
func (s *Session) DefinePool(p machine.PoolConfig) error {
	if err := p.Validate(); err != nil {
		return err
	}
	s.c.sendFact(machine.PoolDefined(s.id, p))
	return nil
}

// Drain starts no further call: calls in flight may end, and waiting items come out of Work
// with a verdict that says so.
func (s *Session) Drain() { s.c.sendFact(machine.Drained(s.id)) }

// Status is [Coordinator.Status] with this run in it as well.
func (s *Session) Status(ctx context.Context, n int) (machine.Status, error) {
	return s.c.status(ctx, n, s.id)
}

// Stranded is closed when no lane is left for any item of the run, or when the run needs more
// lanes than there may be.
func (s *Session) Stranded() <-chan struct{} { return s.stranded }

// Cause returns what stopped the last lane, or [machine.ErrTooManyLanes]. It may be called once
// Stranded is closed.
func (s *Session) Cause() error { return s.cause }

// Closed is closed when [Coordinator.Close] drains the run: offer nothing more, and end the
// input.
func (s *Session) Closed() <-chan struct{} { return s.closed }

// News is one message of a coordinator to a run. Exactly one field is set.
type News struct {
	Transition *machine.Transition // a lane changed its phase
	LongWait   *machine.LongWait   // a lane, or an item of this run, waits for long
}

// News yields the events of all lanes, and is closed when the run is over. News that nobody
// reads in time is dropped and counted. A muted run has a nil channel.
func (s *Session) News() <-chan News { return s.news }

// Final returns the counts of the run's items and calls, and the number of dropped news. It may
// be called once Work is closed.
func (s *Session) Final() (machine.Counters, uint64) { return s.finish.Counters, s.missed }

// Held returns the run's time by what held it back, and the whole time. It may be called once
// Work is closed.
func (s *Session) Held() (machine.Ledger, time.Duration) { return s.finish.Held, s.finish.Ran }

// Money returns the run's money against its budget. It may be called once Work is closed.
func (s *Session) Money() machine.Spending { return s.finish.Money }

// Stopped returns why the first item that no lane could take was released; nil if each had one.
// Other pools of the run may be well. It may be called once Work is closed.
func (s *Session) Stopped() error { return s.finish.Stopped }
