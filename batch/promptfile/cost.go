package promptfile

import "github.com/headrace/headrace/provider"

// spend counts the cost of an item, and keeps it for the item's line; nil means unknown. An
// item that failed and used nothing has no cost to count.
func (m *Maker) spend(res *Result, sums *Sums) *float64 {
	if res.Err != nil && res.Usage == (provider.Usage{}) {
		return nil
	}
	usd, ok := m.cfg.Price(res.Item.Model, res.Usage)
	if !ok || !provider.IsCost(usd) {
		sums.Unpriced++
		return nil
	}
	sums.CostUSD += usd
	sums.Priced++
	return m.costs.keep(usd)
}

// costsAtOnce is the number of costs in one allocation: half a kilobyte, which a line that
// waits for the disk may keep from being freed.
const costsAtOnce = 64

// costs stores the costs of lines, many to an allocation. It belongs to one goroutine.
type costs struct{ room []float64 }

func (c *costs) keep(usd float64) *float64 {
	if len(c.room) == 0 {
		c.room = make([]float64, costsAtOnce)
	}
	kept := &c.room[0]
	*kept, c.room = usd, c.room[1:]
	return kept
}
