package batch

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Items and answers may say more about themselves than their type must. What
// they have is found once per run, not once per item.

// Pooled is an item that says in which pool it waits.
type Pooled interface{ Pool() string }

// Costed is an item that says what its call is expected to draw.
type Costed interface{ Cost() Cost }

// Keyed is an item that says by which key it is remembered, where it has failed and has not
// ended; "": it is not remembered. Where two items share a key, either may count.
type Keyed = machine.Keyed

// Measured is an answer that says what it has used. One that came over
// [provider.Transport] as one JSON value, or from a client of ours, need not, and is not
// asked; one that was streamed must, or its usage is not known.
type Measured interface{ Usage() provider.Usage }

// hints is what a run knows of its items beside their type. Neither is nil.
type hints[In any] struct {
	pool func(In) string
	cost func(In) limiter.Cost
	key  func(In) string // "": it is not remembered
}

// hintsOf finds the hints: what an option says, else the item's own methods,
// else one pool and one request each.
func hintsOf[In any](c *config) (hints[In], error) {
	h := hints[In]{
		pool: func(In) string { return "" },
		cost: func(In) limiter.Cost { return limiter.Cost{Requests: 1} },
		key:  func(In) string { return "" },
	}
	if says[In, Pooled]() {
		h.pool = func(in In) string { return any(in).(Pooled).Pool() }
	}
	if says[In, Costed]() {
		h.cost = func(in In) limiter.Cost { return any(in).(Costed).Cost() }
	}
	if says[In, Keyed]() {
		h.key = func(in In) string { return any(in).(Keyed).ItemKey() }
	}
	return h, errors.Join(
		override(&h.pool, c.poolOf, "WithPoolOf"),
		override(&h.cost, c.costOf, "WithCostOf"),
		override(&h.key, c.keyOf, "WithKeyOf"),
	)
}

// says reports whether every In has the methods of Hint. The type is asked and
// not its zero value: that of an interface has no methods.
func says[In, Hint any]() bool { return reflect.TypeFor[In]().Implements(reflect.TypeFor[Hint]()) }

// mayBeMeasured reports whether an Out may be [Measured]: an interface may hold anything.
func mayBeMeasured[Out any]() bool {
	return says[Out, Measured]() || reflect.TypeFor[Out]().Kind() == reflect.Interface
}

// override replaces a hint by the one of an option. Options know no type
// parameters, so that theirs fit the items is found out here.
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
