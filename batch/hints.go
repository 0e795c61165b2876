package batch

import (
	"fmt"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Items and answers may say more about themselves than their type must. What
// they have is found once per run, not once per item.

// Pooled is an item that says in which pool it waits.
type Pooled interface{ Pool() string }

// Costed is an item that says what its call is expected to draw.
type Costed interface{ Cost() limiter.Cost }

// Measured is an answer that says what it has used. One that came over
// [provider.Transport] or from a client of ours need not.
type Measured interface{ Usage() provider.Usage }

// hints is what a run knows of its items beside their type. Neither is nil.
type hints[In any] struct {
	pool func(In) string
	cost func(In) limiter.Cost
}

// hintsOf finds the hints: what an option says, else the item's own methods,
// else one pool and one request each.
func hintsOf[In any](c *config) (hints[In], error) {
	var none In
	h := hints[In]{
		pool: func(In) string { return "" },
		cost: func(In) limiter.Cost { return limiter.Cost{Requests: 1} },
	}
	if _, ok := any(none).(Pooled); ok {
		h.pool = func(in In) string { return any(in).(Pooled).Pool() }
	}
	if _, ok := any(none).(Costed); ok {
		h.cost = func(in In) limiter.Cost { return any(in).(Costed).Cost() }
	}
	if err := override(&h.pool, c.poolOf, "WithPoolOf"); err != nil {
		return h, err
	}
	return h, override(&h.cost, c.costOf, "WithCostOf")
}

// override replaces a hint by the one of an option. Options know no type
// parameters, so that theirs fit the items is found out here.
func override[F any](hint *F, given any, option string) error {
	if given == nil {
		return nil
	}
	f, ok := given.(F)
	if !ok {
		return fmt.Errorf("%w: %s takes %T, the items need %T", ErrConfig, option, given, *hint)
	}
	*hint = f
	return nil
}
