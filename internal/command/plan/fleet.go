package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/forecast"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// In a run over several lanes a row of the plan is a route: the lines of one model, of one pool.
// Which lane takes which line shows in the forecast; what its lanes would ask for all of them bounds
// the cost.
//
//	mini/gpt-5-mini      1,000 items   $0.30   $0.30–$4.00 on any one lane
//	  azure/mini-prod    1,000 items   $0.30   $0.30 for all
//	  claude, tier 2         0 items   $0.00   $4.00 for all

// laneOnRoute is a lane's part in a route.
type laneOnRoute struct {
	lane     int // index in the plan's
	tier     int // in the pool, from 0
	spec     *route.OnRoute
	sums             // if it did all items of the route
	unpriced bool    // some item has no price here
	items    float64 // that it does, by the forecast
}

// takeRouted counts a request in a run over several lanes.
func (p *Plan) takeRouted(req *prompts.Request) {
	r := p.cfg.Routes.Of(req)
	if r == nil {
		return // no lane takes it: the end of the check says so
	}
	row, pool := p.rowOfRoute(r)
	input, output, maxOutput := p.tokensOf(*req)
	p.items++
	row.items, row.input, row.output = row.items+1, row.input+input, row.output+output
	if maxOutput == 0 && !provider.OnlyReads(req.Endpoint) {
		row.unbounded++
	}
	for i := range row.lanes {
		row.lanes[i].addItem(&p.cfg, row, req.Model, input, output, maxOutput, estimate.Prompt(req.Body))
	}
	latency := p.latencyOf(req.Model, output)
	if timeout := p.lanes[row.lanes[0].lane].AttemptTimeout; timeout > 0 && latency > timeout {
		p.tooLong++
	}
	p.latency += latency.Seconds()
	p.sample.Add(forecast.Call{Pool: pool, Cost: settings.EstimateOf(req), Latency: latency})
}

// addItem adds what an item of the row costs on this lane, or marks the lane as unpriced.
func (l *laneOnRoute) addItem(cfg *Config, row *modelPlan, model string, input, output, maxOutput, prompt float64) {
	flags := l.spec.Spec.Flags
	lanePrice, source, known := l.spec.Price(model)
	if known {
		row.noteReserve(&lanePrice, prompt, maxOutput, cfg.At)
		known = l.sums.add(&lanePrice, flags.PriceTier(), flags.OffersFlex(), input, output, maxOutput, cfg.At)
	}
	if !known {
		l.unpriced = true
		return
	}
	row.dated = row.dated || source == price.FromTable()
}

// rowOfRoute returns the row of a route, and its index. The first call for a route adds the row.
func (p *Plan) rowOfRoute(r *route.Route) (row *modelPlan, index int) {
	if index, ok := p.byModel[r.Name]; ok {
		return p.models[index], index
	}
	row = &modelPlan{name: r.Name, route: r}
	for i := range r.Lanes {
		onRoute := &r.Lanes[i]
		lane := p.laneIndex(onRoute)
		if !slices.ContainsFunc(row.lanes, func(l laneOnRoute) bool { return l.lane == lane }) { // lanes of one quota are one
			row.lanes = append(row.lanes, laneOnRoute{lane: lane, tier: onRoute.Tier, spec: onRoute})
		}
	}
	index = len(p.models)
	p.byModel[r.Name], p.models = index, append(p.models, row)
	p.pools = append(p.pools, p.forecastPool(row))
	return row, index
}

// laneIndex returns the index of a lane. The first call for a lane adds it with its limits.
func (p *Plan) laneIndex(onRoute *route.OnRoute) int {
	if index, ok := p.byQuota[onRoute.Machine]; ok {
		return index
	}
	index := len(p.lanes)
	cfg, err := onRoute.Spec.Config()
	if err != nil {
		cfg = machine.LaneConfig{} // the check of the file has let it pass
	}
	limits := limiter.Limits{}
	if strings.HasPrefix(p.cfg.Tier.Name, onRoute.Spec.Flags.Name()+"-") {
		limits = p.cfg.Tier.limitsOf(onRoute.Word)
	}
	shown := p.cfg.OnLane[onRoute.Machine]
	if !shown.Limits.Zero() {
		limits = shown.Limits
	}
	p.byQuota[onRoute.Machine] = index
	p.lanes, p.laneNames = append(p.lanes, cfg), append(p.laneNames, onRoute.Machine)
	p.quotas, p.laneLatencies = append(p.quotas, withGiven(limits, cfg.Limits)), append(p.laneLatencies, shown.Latency)
	return index
}

// forecastPool returns the pool of a row in the form of the forecast. Tiers without a lane for these lines
// are left out.
func (p *Plan) forecastPool(row *modelPlan) forecast.Pool {
	pool := forecast.Pool{After: row.route.Pool.After, Spill: row.route.Pool.Spill}
	tier, tierInFile, hasWeights := -1, -1, false
	for i := range row.lanes {
		lane := &row.lanes[i]
		if lane.tier != tierInFile { // a tier without a lane for these lines is none
			tier, tierInFile = tier+1, lane.tier
		}
		pool.Lanes, pool.Tiers = append(pool.Lanes, lane.lane), append(pool.Tiers, tier)
		pool.Weights = append(pool.Weights, max(1, lane.spec.Spec.Weight))
		hasWeights = hasWeights || lane.spec.Spec.Weight > 0
	}
	if !hasWeights {
		pool.Weights = nil
	}
	if tier == 0 {
		pool.Tiers, pool.After, pool.Spill = nil, 0, 0
	}
	return pool
}

// shareItems divides the items of each route among its lanes, as the forecast has divided them.
func (p *Plan) shareItems() {
	for at, row := range p.models {
		row.usd, row.unpriced = 0, 0
		row.low, row.high, row.most = row.costRange()
		for i := range row.lanes {
			lane := &row.lanes[i]
			if lane.items = p.forecast.Lanes[lane.lane].CallsOf(at); lane.unpriced {
				row.unpriced = row.items
			}
			usd, _ := lane.costOfItems(row.items)
			row.usd += usd
		}
	}
}

// costRange returns what the items of a route cost on its cheapest and on its dearest lane, and what they
// cost at most. Lanes without a known price are left out.
func (m *modelPlan) costRange() (low, high, most float64) {
	first := true
	for i := range m.lanes {
		lane := &m.lanes[i]
		if lane.unpriced {
			continue
		}
		if high, most = max(high, lane.usd), max(most, lane.most); first || lane.usd < low {
			low = lane.usd
		}
		first = false
	}
	return low, high, most
}

// timeOfRow returns the time until the lanes of a row have ended their last items. It includes the items of
// other rows on the same lanes.
func (p *Plan) timeOfRow(row *modelPlan) (took time.Duration) {
	if row.route == nil {
		return p.forecast.Lanes[row.quota].Took
	}
	for i := range row.lanes {
		if lane := &row.lanes[i]; lane.items > 0 {
			took = max(took, p.forecast.Lanes[lane.lane].Took)
		}
	}
	return took
}

// printRoutes prints a row for each route, and below it one for each of its lanes.
func (p *Plan) printRoutes(out io.Writer) {
	rows := [][]string{{"pool and its lanes", "items", "tokens in", "tokens out", "cost", "all on one", "at most", "time"}}
	number := func(x float64) string { return words.Thousands(x) }
	routes := slices.SortedStableFunc(slices.Values(p.models), func(a, b *modelPlan) int { return b.items - a.items })
	var sum modelPlan
	for i, row := range routes {
		if sum = sum.plus(*row); i >= mostModels {
			continue
		}
		rows = append(rows, []string{shortName(row.name), number(float64(row.items)), number(row.input), number(row.output), money(row.knownCost()), row.costRangeText(), row.atMostText(), durationText(p.timeOfRow(row))})
		for k := range row.lanes {
			lane := &row.lanes[k]
			name, took := "  "+shortName(p.laneNames[lane.lane]), "–"
			if lane.tier > 0 {
				name += fmt.Sprintf(", tier %d", lane.tier+1)
			}
			if lane.items > 0 {
				took = durationText(p.forecast.Lanes[lane.lane].Took)
			}
			rows = append(rows, []string{name, number(lane.items), "", "", money(lane.costOfItems(row.items)), money(lane.usd, !lane.unpriced), "", took})
		}
	}
	if n := len(routes) - mostModels; n > 0 {
		rows = append(rows, []string{fmt.Sprintf("(%s)", words.Count(n, "other"))})
	}
	if len(routes) > 1 {
		rows = append(rows, []string{"in all", number(float64(sum.items)), number(sum.input), number(sum.output), p.totalCost(), sum.costRangeText(), sum.atMostText(), durationText(p.forecast.Took)})
	}
	for i := range rows {
		rows[i] = append(rows[i], make([]string, len(rows[0])-len(rows[i]))...)
	}
	printTable(out, rows)
}

// costOfItems returns what the lane's part of a route's items costs.
func (l *laneOnRoute) costOfItems(items int) (usd float64, known bool) {
	return l.usd * l.items / float64(max(1, items)), !l.unpriced || l.items == 0
}

// costRangeText returns the cost of the items on the cheapest lane and on the dearest, in words.
func (m *modelPlan) costRangeText() string {
	switch low, high := words.Money(m.low), words.Money(m.high); {
	case m.unpriced > 0:
		return "unknown"
	case low == high:
		return low
	default:
		return low + "–" + high
	}
}

// Span returns the cost if each item goes to its cheapest lane, and if each goes to its dearest, as far as
// prices are known. Unpriced counts the items for which some lane has no price.
func (p *Plan) Span() (low, high float64, unpriced int) {
	for _, row := range p.models {
		if row.route == nil {
			low, high, unpriced = low+row.usd, high+row.usd, unpriced+row.unpriced
			continue
		}
		cheapest, dearest, _ := row.costRange()
		low, high = low+cheapest, high+dearest
		if slices.ContainsFunc(row.lanes, func(l laneOnRoute) bool { return l.unpriced }) {
			unpriced += row.items
		}
	}
	return low, high, unpriced
}

// costInFlex returns the cost if all items that can use the flex tier did so.
func (p *Plan) costInFlex() (usd float64) {
	for _, row := range p.models {
		usd += row.flex
		for i := range row.lanes {
			lane := &row.lanes[i]
			usd += lane.flex * lane.items / float64(max(1, row.items))
		}
	}
	return usd
}

// poolToPrefer returns the pool that would save the most money if its cheapest lane went first, and that
// lane. It returns nil if that saves too little.
func (p *Plan) poolToPrefer() (best *modelPlan, cheapest *laneOnRoute) {
	for _, row := range p.models {
		if row.route == nil || row.unpriced > 0 || row.usd-row.low <= leastGain*row.usd || best != nil && row.usd-row.low <= best.usd-best.low {
			continue
		}
		best = row
		for i := range row.lanes {
			if lane := &row.lanes[i]; lane.usd == row.low {
				cheapest = lane
			}
		}
	}
	return best, cheapest
}

// timeIfSpread returns the time of the run if all lanes of each pool took turns; 0 if it is no shorter.
func (p *Plan) timeIfSpread() time.Duration {
	cfg := p.forecastConfig(limiter.None, 1)
	hasTiers := false
	for i := range cfg.Pools {
		hasTiers = hasTiers || cfg.Pools[i].Tiers != nil
	}
	if !hasTiers {
		return 0
	}
	cfg.Pools = slices.Clone(cfg.Pools)
	for i := range cfg.Pools {
		cfg.Pools[i].Tiers, cfg.Pools[i].After, cfg.Pools[i].Spill = nil, 0, 0
	}
	took := forecast.Run(cfg, &p.sample).Took
	if float64(took) > (1-leastGain)*float64(p.forecast.Took) {
		return 0
	}
	return took
}
