package batch

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

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

// hints holds what a run knows of its items besides their type. No field is nil.
type hints[In any] struct {
	pool func(In) string
	cost func(In) limiter.Cost
	key  func(In) string // "": it is not remembered
}

// hintsOf finds the hints: an option's, else the item's own methods, else one pool and one
// request each.
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

// says reports whether every In has the methods of Hint. It looks at the type and not at
// its zero value: the zero value of an interface has no methods.
func says[In, Hint any]() bool { return reflect.TypeFor[In]().Implements(reflect.TypeFor[Hint]()) }

// mayBeMeasured reports whether an Out may be [Measured]: an interface may hold anything.
func mayBeMeasured[Out any]() bool {
	return says[Out, Measured]() || reflect.TypeFor[Out]().Kind() == reflect.Interface
}

// override replaces a hint by that of an option. Options have no type parameters, so
// override checks whether the option's function fits the items.
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
