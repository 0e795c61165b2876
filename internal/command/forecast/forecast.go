package forecast

import (
	"math"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Config holds the settings of a batch's run.
type Config struct {
	// Limits holds the limits of each lane: the machine knows them and the provider keeps
	// them. The concurrency alone bounds a lane without any.
	Limits      []limiter.Limits
	Lane        machine.LaneConfig // the settings of all lanes, without their limits
	Concurrency int                // calls in flight; at least 1
	Seed        uint64

	// Pools divides the calls among several lanes; nil: each lane has a pool of its own.
	Pools []Pool
	Lanes []machine.LaneConfig // of each lane, in place of Lane; nil: Lane is of all
	Lasts []time.Duration      // of a call on each lane, in the median; 0, or nil: as the call says
}

// Pool is a pool of lanes, by their places in the limits, as [machine.PoolConfig] says.
type Pool struct {
	Lanes, Tiers, Weights []int
	After, Spill          time.Duration
}

// Forecast is the expected course of a batch.
type Forecast struct {
	Took        time.Duration // from the first call to the last answer
	Concurrency float64       // mean share of it in use, 0..1
	Lanes       []Lane
	Refused     int  // 429s in the sample: none, as the machine knows the limits
	Scaled      bool // it was a sample: the rest counts as going on at the pace of its second half
}

// Lane is one lane's part.
type Lane struct {
	Took time.Duration
	// Used is the share of each limit's inflow that was drawn while calls leave: near 1 the
	// lane waits for that limit. 0 where there is no limit.
	Used  map[limiter.Dimension]float64
	Calls []float64 // by pool: those of the batch that the lane would take
	// TooLarge counts the calls of the sample that draw more than a minute's limit holds: a
	// provider refuses them for good.
	TooLarge int
}

// CallsOf returns how many calls of a pool the lane would take.
func (l *Lane) CallsOf(pool int) float64 {
	if pool >= len(l.Calls) {
		return 0
	}
	return l.Calls[pool]
}

// Dimensions lists the dimensions that a limit can be set for.
var Dimensions = []limiter.Dimension{limiter.Requests, limiter.Tokens, limiter.InputTokens, limiter.OutputTokens}

// maxLimitTime is the most virtual time that the limits may give a run: at four looks a second
// that is a fraction of a second's work. A longer run is scaled from a smaller sample.
const maxLimitTime = 24 * time.Hour

// Run forecasts a batch. It thins the sample until the limits give it at most maxLimitTime. An empty batch
// takes no time.
func Run(c Config, sample *Sample) Forecast {
	for sample.Kept() > max(1, len(sample.total)) {
		kept := float64(sample.Kept()) / float64(sample.Len())
		if sample.secondsUnderLimits(c)*kept <= maxLimitTime.Seconds() {
			break
		}
		sample = sample.Smaller(sample.Kept() - 1)
	}
	if sample.Kept() == 0 {
		return Forecast{Lanes: make([]Lane, len(c.Limits))}
	}
	w := newWorld(c, sample)
	w.run()
	return w.forecast()
}

// secondsUnderLimits returns the time, in seconds, that the tightest limit of any lane demands for the whole
// batch.
func (s *Sample) secondsUnderLimits(c Config) float64 {
	longest := 0.0
	for i, total := range s.total {
		pool := c.poolAt(i)
		for _, d := range Dimensions {
			perMinute := 0.0
			for k, lane := range pool.Lanes {
				if pool.Tiers == nil || pool.Tiers[k] == 0 { // the others are spare
					perMinute += orInf(c.Limits[lane].PerMinute(d))
				}
			}
			longest = max(longest, total.cost.In(d)/perMinute*60)
		}
	}
	return longest
}

// orInf returns a limit as a rate.
func orInf(perMinute float64) float64 {
	if perMinute > 0 {
		return perMinute
	}
	return math.Inf(1)
}

// poolAt returns a pool of the batch.
func (c *Config) poolAt(i int) Pool {
	if c.Pools == nil {
		return Pool{Lanes: []int{i}}
	}
	return c.Pools[i]
}

// forecast returns what the world has shown, scaled to the calls that the world did not run.
func (w *world) forecast() Forecast {
	f := Forecast{Refused: w.refused, Scaled: w.sample.Kept() < w.sample.Len()}
	var sending time.Duration
	for i := range w.lanes {
		part := w.laneForecast(i)
		f.Lanes = append(f.Lanes, part)
		f.Took = max(f.Took, part.Took)
		sending = max(sending, w.lanes[i].sending())
	}
	if sending > 0 {
		f.Concurrency = min(1, w.busy/float64(w.cfg.Concurrency)/sending.Seconds())
	}
	return f
}

// laneForecast returns a lane's part of the forecast.
func (w *world) laneForecast(i int) Lane {
	side := &w.lanes[i]
	part := Lane{Used: map[limiter.Dimension]float64{}, TooLarge: side.tooLarge}
	minutes := side.sending().Minutes()
	for _, d := range Dimensions {
		if perMinute := w.cfg.Limits[i].PerMinute(d); perMinute > 0 && minutes > 0 {
			part.Used[d] = min(1, side.drawn.In(d)/(perMinute*minutes))
		}
	}
	all := 0.0
	for pool, sent := range side.byPool {
		calls := 0.0
		if sent > 0 {
			calls = sent / float64(w.calls[pool]) * float64(w.sample.total[pool].calls)
		}
		part.Calls = append(part.Calls, calls)
		all += calls
	}
	// Half of the longest Duration leaves room for the rest, which is at most a quarter.
	part.Took = min(side.ended.Sub(start), math.MaxInt64/2) + side.timeOfRest(all)
	return part
}

// sending returns the time from the start until the lane's last call leaves.
func (l *lane) sending() time.Duration {
	if len(l.sentAt) == 0 {
		return 0
	}
	return l.sentAt[len(l.sentAt)-1]
}

// timeOfRest returns the time of the calls that did not run. They go on at the pace of the second half of
// those that did, as the first half had to start.
func (l *lane) timeOfRest(calls float64) time.Duration {
	sent := len(l.sentAt)
	remaining := calls - float64(sent)
	if remaining <= 0 || sent < 2 {
		return 0
	}
	half := sent / 2
	perSecond := float64(sent-half) / (l.sending() - l.sentAt[half-1]).Seconds() // a second; +Inf if all left at once
	return time.Duration(min(remaining/perSecond, math.MaxInt64/4e9) * 1e9)
}

// maxSample is the most calls that a Sample keeps and Run runs: a second's work.
const maxSample = 100_000

// Call is one item: its draw on its lane's limits, and the median time of its answer.
type Call struct {
	Pool    int // index of the pool, which is that of its only lane where Config has no pools
	Cost    limiter.Cost
	Latency time.Duration
}

// Sample is a batch, or an even sample of one. The zero value is empty and ready.
type Sample struct {
	calls     []drawnCall
	threshold uint64 // a call is kept if its draw is at most that; 0: all are
	seen      uint64
	total     []poolTotal
}

// poolTotal sums up the calls of one pool, kept or not.
type poolTotal struct {
	calls int
	cost  limiter.Cost
}

type drawnCall struct {
	draw uint64
	Call
}

// Add adds the next call of the batch, and thins the sample if it is full.
func (s *Sample) Add(call Call) {
	for len(s.total) <= call.Pool {
		s.total = append(s.total, poolTotal{})
	}
	total := &s.total[call.Pool]
	total.calls++
	total.cost = limiter.Cost{
		Requests: total.cost.Requests + call.Cost.Requests, Input: total.cost.Input + call.Cost.Input, Output: total.cost.Output + call.Cost.Output,
	}
	s.seen++
	hash := scatter(s.seen)
	if total.calls == 1 {
		hash = 0 // every sample keeps it: nothing else shows where the calls of its pool go
	}
	if s.threshold == 0 || hash <= s.threshold {
		s.calls = append(s.calls, drawnCall{hash, call})
	}
	if len(s.calls) > maxSample {
		s.thin()
	}
}

// Len returns the number of calls in the batch.
func (s *Sample) Len() int { return int(s.seen) }

// Kept returns how many of them are in the sample.
func (s *Sample) Kept() int { return len(s.calls) }

// Smaller returns a sample of the same batch with at most that many calls, but at least one of each pool.
func (s *Sample) Smaller(most int) *Sample {
	smaller := *s
	smaller.calls = append([]drawnCall(nil), s.calls...)
	for len(smaller.calls) > max(1, most, len(smaller.total)) {
		smaller.thin()
	}
	return &smaller
}

// Scaled returns the same batch with the tokens and the latencies of calls multiplied by these factors.
func (s *Sample) Scaled(draws, lasts float64) *Sample {
	scaled := *s
	scaled.calls = append([]drawnCall(nil), s.calls...)
	scaled.total = append([]poolTotal(nil), s.total...)
	for i := range scaled.calls {
		c := &scaled.calls[i].Call
		c.Cost.Input, c.Cost.Output = c.Cost.Input*draws, c.Cost.Output*draws
		c.Latency = time.Duration(min(float64(c.Latency)*lasts, math.MaxInt64/4))
	}
	for i := range scaled.total {
		c := &scaled.total[i].cost
		c.Input, c.Output = c.Input*draws, c.Output*draws
	}
	return &scaled
}

// thin keeps about half of the calls. It selects them by a hash of their number instead of every second one,
// as files may alternate between models.
func (s *Sample) thin() {
	if s.threshold == 0 {
		s.threshold = 1<<64 - 1
	}
	s.threshold /= 2
	kept := s.calls[:0]
	for _, c := range s.calls {
		if c.draw <= s.threshold {
			kept = append(kept, c)
		}
	}
	s.calls = kept
}

// scatter is the finalizer of SplitMix64: it scatters neighbours.
func scatter(n uint64) uint64 {
	n *= 0x9E3779B97F4A7C15
	n = (n ^ n>>30) * 0xBF58476D1CE4E5B9
	n = (n ^ n>>27) * 0x94D049BB133111EB
	return n ^ n>>31
}
