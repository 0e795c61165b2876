package promptfile

import "github.com/headrace/headrace/provider"

// spend counts what an item has cost, and keeps that for its line; nil: it is not known. Of
// an item that failed and used nothing there is nothing to be known.
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

// costsAtOnce is how many costs are allocated together: half a kilobyte, which is what a
// line that waits for the disk may keep from being freed.
const costsAtOnce = 64

// costs keeps those of lines, many to an allocation. It belongs to one goroutine.
type costs struct{ room []float64 }

func (c *costs) keep(usd float64) *float64 {
	if len(c.room) == 0 {
		c.room = make([]float64, costsAtOnce)
	}
	kept := &c.room[0]
	*kept, c.room = usd, c.room[1:]
	return kept
}
