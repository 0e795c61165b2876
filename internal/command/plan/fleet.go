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

// onLane is a lane's part in a route.
type onLane struct {
	lane     int // index in the plan's
	tier     int // in the pool, from 0
	spec     *route.OnRoute
	sums             // if it did all items of the route
	unpriced bool    // some item has no price here
	items    float64 // that it does, by the forecast
}

// takeRouted counts a request that one of several lanes takes.
func (p *Plan) takeRouted(req *prompts.Request) {
	r := p.cfg.Routes.Of(req)
	if r == nil {
		return // no lane takes it: the end of the check says so
	}
	m, at := p.routeOf(r)
	input, output, most := p.tokensOf(*req)
	p.items++
	m.items, m.input, m.output = m.items+1, m.input+input, m.output+output
	if most == 0 && !provider.OnlyReads(req.Endpoint) {
		m.open++
	}
	for i := range m.lanes {
		m.lanes[i].price(&p.cfg, m, req.Model, input, output, most, estimate.Prompt(req.Body))
	}
	latency := p.latencyOf(req.Model, output)
	if t := p.lanes[m.lanes[0].lane].AttemptTimeout; t > 0 && latency > t {
		p.tooLong++
	}
	p.latency += latency.Seconds()
	p.sample.Add(forecast.Call{Pool: at, Cost: settings.EstimateOf(req), Latency: latency})
}

// price adds what an item costs on the lane.
func (l *onLane) price(c *Config, m *modelPlan, model string, input, output, most, prompt float64) {
	flags := l.spec.Spec.Flags
	p, source, ok := l.spec.Price(model)
	if ok {
		m.reserves(&p, prompt, most, c.At)
		ok = l.sums.add(&p, flags.PriceTier(), flags.OffersFlex(), input, output, most, c.At)
	}
	if !ok {
		l.unpriced = true
		return
	}
	m.dated = m.dated || source == price.FromTable()
}

// routeOf returns the row of a route, and its index.
func (p *Plan) routeOf(r *route.Route) (m *modelPlan, at int) {
	if at, ok := p.byModel[r.Name]; ok {
		return p.models[at], at
	}
	m = &modelPlan{name: r.Name, route: r}
	for i := range r.Lanes {
		of := &r.Lanes[i]
		lane := p.laneOf(of)
		if !slices.ContainsFunc(m.lanes, func(l onLane) bool { return l.lane == lane }) { // lanes of one quota are one
			m.lanes = append(m.lanes, onLane{lane: lane, tier: of.Tier, spec: of})
		}
	}
	at = len(p.models)
	p.byModel[r.Name], p.models = at, append(p.models, m)
	p.pools = append(p.pools, p.poolOf(m))
	return m, at
}

// laneOf returns the index of a lane of the run.
func (p *Plan) laneOf(of *route.OnRoute) int {
	if at, ok := p.byQuota[of.Machine]; ok {
		return at
	}
	at := len(p.lanes)
	c, err := of.Spec.Config()
	if err != nil {
		c = machine.LaneConfig{} // the check of the file has let it pass
	}
	limits := limiter.Limits{}
	if strings.HasPrefix(p.cfg.Tier.Name, of.Spec.Flags.Name()+"-") {
		limits = p.cfg.Tier.of(of.Word)
	}
	shown := p.cfg.OnLane[of.Machine]
	if !shown.Limits.Zero() {
		limits = shown.Limits
	}
	p.byQuota[of.Machine] = at
	p.lanes, p.laneNames = append(p.lanes, c), append(p.laneNames, of.Machine)
	p.quotas, p.lasts = append(p.quotas, over(limits, c.Limits)), append(p.lasts, shown.Latency)
	return at
}

// poolOf returns the pool of a row, for the forecast.
func (p *Plan) poolOf(m *modelPlan) forecast.Pool {
	pool := forecast.Pool{After: m.route.Pool.After, Spill: m.route.Pool.Spill}
	tier, latest, weighs := -1, -1, false
	for i := range m.lanes {
		l := &m.lanes[i]
		if l.tier != latest { // a tier without a lane for these lines is none
			tier, latest = tier+1, l.tier
		}
		pool.Lanes, pool.Tiers = append(pool.Lanes, l.lane), append(pool.Tiers, tier)
		pool.Weights = append(pool.Weights, max(1, l.spec.Spec.Weight))
		weighs = weighs || l.spec.Spec.Weight > 0
	}
	if !weighs {
		pool.Weights = nil
	}
	if tier == 0 {
		pool.Tiers, pool.After, pool.Spill = nil, 0, 0
	}
	return pool
}

// share divides the items of each route among its lanes, as the forecast has them.
func (p *Plan) share() {
	for at, m := range p.models {
		m.usd, m.unpriced = 0, 0
		m.low, m.high, m.most = m.ends()
		for i := range m.lanes {
			l := &m.lanes[i]
			if l.items = p.forecast.Lanes[l.lane].CallsOf(at); l.unpriced {
				m.unpriced = m.items
			}
			usd, _ := l.cost(m.items)
			m.usd += usd
		}
	}
}

// ends returns what the items of a route cost on its cheapest and on its dearest lane, and at most, as
// far as prices are known.
func (m *modelPlan) ends() (low, high, most float64) {
	first := true
	for i := range m.lanes {
		l := &m.lanes[i]
		if l.unpriced {
			continue
		}
		if high, most = max(high, l.usd), max(most, l.most); first || l.usd < low {
			low = l.usd
		}
		first = false
	}
	return low, high, most
}

// tookOf returns the time until the lanes of a row have ended their last items. Lanes that the row shares with
// others end the items of all.
func (p *Plan) tookOf(m *modelPlan) (took time.Duration) {
	if m.route == nil {
		return p.forecast.Lanes[m.quota].Took
	}
	for i := range m.lanes {
		if l := &m.lanes[i]; l.items > 0 {
			took = max(took, p.forecast.Lanes[l.lane].Took)
		}
	}
	return took
}

// printRoutes prints a row for each route, and below it one for each of its lanes.
func (p *Plan) printRoutes(out io.Writer) {
	rows := [][]string{{"pool and its lanes", "items", "tokens in", "tokens out", "cost", "all on one", "at most", "time"}}
	number := func(x float64) string { return words.Thousands(x) }
	routes := slices.SortedStableFunc(slices.Values(p.models), func(a, b *modelPlan) int { return b.items - a.items })
	var all modelPlan
	for i, m := range routes {
		if all = all.plus(*m); i >= mostModels {
			continue
		}
		rows = append(rows, []string{shortName(m.name), number(float64(m.items)), number(m.input), number(m.output), money(m.cost()), m.span(), m.atMost(), long(p.tookOf(m))})
		for k := range m.lanes {
			l := &m.lanes[k]
			name, took := "  "+shortName(p.laneNames[l.lane]), "–"
			if l.tier > 0 {
				name += fmt.Sprintf(", tier %d", l.tier+1)
			}
			if l.items > 0 {
				took = long(p.forecast.Lanes[l.lane].Took)
			}
			rows = append(rows, []string{name, number(l.items), "", "", money(l.cost(m.items)), money(l.usd, !l.unpriced), "", took})
		}
	}
	if n := len(routes) - mostModels; n > 0 {
		rows = append(rows, []string{fmt.Sprintf("(%s)", words.Count(n, "other"))})
	}
	if len(routes) > 1 {
		rows = append(rows, []string{"in all", number(float64(all.items)), number(all.input), number(all.output), p.totalCost(), all.span(), all.atMost(), long(p.forecast.Took)})
	}
	for i := range rows {
		rows[i] = append(rows[i], make([]string, len(rows[0])-len(rows[i]))...)
	}
	printTable(out, rows)
}

// cost returns what the lane's part of a route's items costs.
func (l *onLane) cost(items int) (usd float64, known bool) {
	return l.usd * l.items / float64(max(1, items)), !l.unpriced || l.items == 0
}

// span says what the items cost on the cheapest lane, and on the dearest.
func (m *modelPlan) span() string {
	switch low, high := words.Money(m.low), words.Money(m.high); {
	case m.unpriced > 0:
		return "unknown"
	case low == high:
		return low
	default:
		return low + "–" + high
	}
}

// Span returns the cost of the items if each goes to the cheapest of its lanes, and if each goes to the
// dearest, as far as prices are known. Unpriced counts the items for which some lane has none.
func (p *Plan) Span() (low, high float64, unpriced int) {
	for _, m := range p.models {
		if m.route == nil {
			low, high, unpriced = low+m.usd, high+m.usd, unpriced+m.unpriced
			continue
		}
		cheapest, dearest, _ := m.ends()
		low, high = low+cheapest, high+dearest
		if slices.ContainsFunc(m.lanes, func(l onLane) bool { return l.unpriced }) {
			unpriced += m.items
		}
	}
	return low, high, unpriced
}

// inFlex returns what the items would cost if all that can be were asked in the flex tier.
func (p *Plan) inFlex() (usd float64) {
	for _, m := range p.models {
		usd += m.flex
		for i := range m.lanes {
			l := &m.lanes[i]
			usd += l.flex * l.items / float64(max(1, m.items))
		}
	}
	return usd
}

// preferred returns the pool in which most money could be saved if its cheapest lane went first; nil:
// that changes nothing.
func (p *Plan) preferred() (best *modelPlan, cheap *onLane) {
	for _, m := range p.models {
		if m.route == nil || m.unpriced > 0 || m.usd-m.low <= gain*m.usd || best != nil && m.usd-m.low <= best.usd-best.low {
			continue
		}
		best = m
		for i := range m.lanes {
			if l := &m.lanes[i]; l.usd == m.low {
				cheap = l
			}
		}
	}
	return best, cheap
}

// spread returns the time of the run if all lanes of each pool took turns; 0: it is no shorter.
func (p *Plan) spread() time.Duration {
	c := p.config(limiter.None, 1)
	tiers := false
	for i := range c.Pools {
		tiers = tiers || c.Pools[i].Tiers != nil
	}
	if !tiers {
		return 0
	}
	c.Pools = slices.Clone(c.Pools)
	for i := range c.Pools {
		c.Pools[i].Tiers, c.Pools[i].After, c.Pools[i].Spill = nil, 0, 0
	}
	took := forecast.Run(c, &p.sample).Took
	if float64(took) > (1-gain)*float64(p.forecast.Took) {
		return 0
	}
	return took
}
