package batch

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// feedChunk is the maximum number of items in one message to the coordinator. Beyond 64 the
// cost of a message hardly shows against that of its items.
const feedChunk = 64

// read takes items from the caller's input, numbers them, and passes them on. It is
// separate from feed because the input may block for as long as it likes. An item already
// taken must not wait for that.
func (r *run[In, Out]) read() {
	defer r.endJobs()
	r.inputErr = fmt.Errorf("%w: %w", ErrInput, errGone) // unless it returns
	r.inputErr = guarded(r.readItems)
	if r.inputErr != nil {
		r.inputErr = fmt.Errorf("%w: %w", ErrInput, r.inputErr)
	}
}

// readItems takes items from the input until it ends, or the run must take no more. It takes an item only with a
// credit in hand.
func (r *run[In, Out]) readItems() {
	var (
		credits int
		spare   []job[In, Out]
		seq     uint64
	)
	if !r.awaitCredit(&credits) {
		return
	}
	for in := range r.items {
		if isClosed(r.stop) {
			return // this one came too late; the caller still has it
		}
		if len(spare) == 0 {
			spare = newJobs[In, Out]()
		}
		j := &spare[0]
		spare = spare[1:]
		j.Seq, j.result.Index, j.result.Item = seq, int(seq), in
		if r.prepare(j) {
			r.jobs <- j
		}
		seq++
		if credits--; !r.awaitCredit(&credits) && !r.asksForMore() {
			return
		}
	}
	r.exhausted = true
}

// endJobs signals that no more items come.
func (r *run[In, Out]) endJobs() {
	if !r.jobsEnded {
		r.jobsEnded = true
		close(r.jobs)
	}
}

// asksForMore reports whether a run that takes no more items asks its input once more whether that was all. It asks
// only after the last result was taken, and only if each item was answered. So an input that blocks keeps neither
// calls nor results waiting.
func (r *run[In, Out]) asksForMore() bool {
	r.endJobs()
	return <-r.readOn
}

// awaitCredit waits until the reader has a credit. It returns false if the run must take no more items.
func (r *run[In, Out]) awaitCredit(credits *int) bool {
	for *credits == 0 {
		select {
		case n := <-r.credit:
			*credits += n
		case <-r.stop:
			return false
		}
	}
	return !isClosed(r.stop)
}

// prepare fills in what the machine needs to know of an item: its pool, cost and key. It returns false if the
// caller's Pool, Cost or ItemKey panicked. The panic is then the item's failure, and its result goes out at once.
func (r *run[In, Out]) prepare(j *job[In, Out]) bool {
	err := errGone // unless they return
	defer func() {
		if err != nil {
			r.unpreparedItems++
			j.finish(fmt.Errorf("batch: pool, cost and key of the item: %w", err), false)
			r.results <- j // has room, as the item has a credit
			if r.failures.note(err) {
				r.session.Drain()
			}
		}
	}()
	err = guarded(func() {
		if j.Pool = r.hints.pool(j.result.Item); r.homes != nil {
			r.useHomePool(j)
		}
		j.Cost = r.hints.cost(j.result.Item)
		if r.remembers() {
			j.key = r.hints.key(j.result.Item)
		}
	})
	j.Payload = j
	return err == nil
}

// feed offers the items read, as many at once as are ready. It waits while the coordinator
// accepts no more. That wait ends: the items ahead are run, or released when the run is
// stopped.
func (r *run[In, Out]) feed() {
	defer r.session.EndInput()
	for j := range r.jobs {
		more := len(r.jobs) // all are ready: nothing else receives from jobs
		items := append(make([]*machine.Item, 0, 1+more), &j.Item)
		for range more {
			items = append(items, &(<-r.jobs).Item)
		}
		r.session.Offer(items)
	}
}

// Items and answers may say more about themselves than their type requires. A run looks for
// these methods once, not once per item.

// Pooled is an item that names the pool in which it waits.
type Pooled interface{ Pool() string }

// Costed is an item that estimates what its call draws.
type Costed interface{ Cost() Cost }

// Keyed is an item that has a key. A run remembers an item under its key if the item has
// failed and has not ended; an item with the key "" is not remembered. If two items share a
// key, either may count.
type Keyed = machine.Keyed

// Measured is an answer that reports its usage. An answer that came over
// [provider.Transport] as one JSON value, or from a client of ours, need not be Measured,
// and its method is not called. An answer that was streamed must be, or its usage is
// unknown.
type Measured interface{ Usage() provider.Usage }

// hints holds what a run knows of its items besides their type. No function is nil.
type hints[In any] struct {
	pool   func(In) string
	cost   func(In) limiter.Cost
	key    func(In) string // "": it is not remembered
	home   func(In) string // "": it has none
	budget *Budget[In]     // nil: there is none
}

// hintsOf finds the hints: an option's, else the item's own methods, else one pool and one
// request each.
func hintsOf[In any](c *config) (hints[In], error) {
	h := hints[In]{
		pool: func(In) string { return "" },
		cost: func(In) limiter.Cost { return limiter.Cost{Requests: 1} },
		key:  func(In) string { return "" },
		home: func(In) string { return "" },
	}
	if implements[In, Pooled]() {
		h.pool = func(in In) string { return any(in).(Pooled).Pool() }
	}
	if implements[In, Costed]() {
		h.cost = func(in In) limiter.Cost { return any(in).(Costed).Cost() }
	}
	if implements[In, Keyed]() {
		h.key = func(in In) string { return any(in).(Keyed).ItemKey() }
	}
	if implements[In, Homed]() {
		h.home = func(in In) string { return any(in).(Homed).HomeKey() }
	}
	return h, errors.Join(
		c.checkHomes(implements[In, Homed]() || c.homeKeyOf != nil),
		override(&h.pool, c.poolOf, "WithPoolOf"),
		override(&h.cost, c.costOf, "WithCostOf"),
		override(&h.key, c.keyOf, "WithKeyOf"),
		override(&h.home, c.homeKeyOf, "WithHomeKeyOf"),
		override(&h.budget, c.budget, "WithMaxCost"),
	)
}

// implements reports whether every In has the methods of Hint. It looks at the type and not at its zero value: the
// zero value of an interface has no methods.
func implements[In, Hint any]() bool {
	return reflect.TypeFor[In]().Implements(reflect.TypeFor[Hint]())
}

// mayBeMeasured reports whether an Out may be [Measured]: an interface may hold anything.
func mayBeMeasured[Out any]() bool {
	return implements[Out, Measured]() || reflect.TypeFor[Out]().Kind() == reflect.Interface
}

// override replaces a hint by the function of an option, if one is given. Options have no type parameters, so
// override checks whether the function fits the items.
func override[F any](hint *F, given any, option string) error {
	if given == nil {
		return nil
	}
	f, ok := given.(F)
	if !ok {
		return fmt.Errorf("%s: is %T, and the items need %T", option, given, *hint)
	}
	*hint = f
	return nil
}
