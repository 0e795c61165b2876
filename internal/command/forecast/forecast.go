package forecast

import (
	"math"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Config is what a batch is run with.
type Config struct {
	// Limits are those of each lane, told to the machine and kept by the provider.
	// A lane without any is bounded by the concurrency alone.
	Limits      []limiter.Limits
	Lane        machine.LaneConfig // what the machine is told of all lanes, but for their limits
	Concurrency int                // calls in flight; at least 1
	Seed        uint64
}

// Forecast is what is to be expected.
type Forecast struct {
	Took        time.Duration // from the first call to the last answer
	Concurrency float64       // mean share of it that is in use, 0..1
	Lanes       []Lane
	Refused     int  // 429s in the sample: none, as the limits are told
	Scaled      bool // it was a sample: the rest is taken to go on at the pace of its second half
}

// Lane is one lane's part.
type Lane struct {
	Took time.Duration
	// Used is how much of each limit was drawn, as a share of what flows in while
	// calls leave: near 1 is what the lane waits for. 0 where there is no limit.
	Used map[limiter.Dimension]float64
	// TooLarge are calls of the sample that draw more than a minute's limit holds: a
	// provider refuses them for good.
	TooLarge int
}

// Dimensions are what a limit can be told of.
var Dimensions = []limiter.Dimension{limiter.Requests, limiter.Tokens, limiter.InputTokens, limiter.OutputTokens}

// longest is how much virtual time a run may take by the limits: at four looks a
// second that is a fraction of a second's work. What would take longer is scaled
// from less.
const longest = 24 * time.Hour

// Run forecasts a batch. Nothing to do takes no time.
func Run(c Config, s *Sample) Forecast {
	for s.Kept() > 1 {
		part := float64(s.Kept()) / float64(s.Len())
		if s.fluid(c)*part <= longest.Seconds() {
			break
		}
		s = s.Smaller(s.Kept() - 1)
	}
	if s.Kept() == 0 {
		return Forecast{Lanes: make([]Lane, len(s.total))}
	}
	w := newWorld(c, s)
	w.run()
	return w.forecast()
}

// fluid is the time in seconds that the tightest limit of any lane asks for.
func (s *Sample) fluid(c Config) float64 {
	longest := 0.0
	for lane, t := range s.total {
		for _, d := range Dimensions {
			if perMinute := c.Limits[lane].PerMinute(d); perMinute > 0 {
				longest = max(longest, of(t.cost, d)/perMinute*60)
			}
		}
	}
	return longest
}

// of is the part of a cost that a limit in that dimension counts.
func of(c limiter.Cost, d limiter.Dimension) float64 {
	switch d {
	case limiter.Requests:
		return c.Requests
	case limiter.Tokens:
		return c.Tokens()
	case limiter.InputTokens:
		return c.Input
	case limiter.OutputTokens:
		return c.Output
	}
	return 0
}

// forecast is what the world has shown, and for what it did not run, what that
// suggests.
func (w *world) forecast() Forecast {
	f := Forecast{Refused: w.refused, Scaled: w.sample.Kept() < w.sample.Len()}
	var sending time.Duration
	for i := range w.lanes {
		l := &w.lanes[i]
		f.Lanes = append(f.Lanes, w.laneForecast(i))
		f.Took = max(f.Took, f.Lanes[i].Took)
		sending = max(sending, l.lastSent.Sub(start))
	}
	if sending > 0 {
		f.Concurrency = min(1, w.busy/float64(w.cfg.Concurrency)/sending.Seconds())
	}
	return f
}

func (w *world) laneForecast(i int) Lane {
	l, limits := &w.lanes[i], w.cfg.Limits[i]
	out := Lane{Used: map[limiter.Dimension]float64{}, TooLarge: l.tooLarge}
	sending := l.lastSent.Sub(start)
	for _, d := range Dimensions {
		if perMinute := limits.PerMinute(d); perMinute > 0 && sending > 0 {
			out.Used[d] = min(1, of(l.drawn, d)/(perMinute*sending.Minutes()))
		}
	}
	out.Took = min(l.ended.Sub(start), math.MaxInt64/2) + l.rest(w.sample.total[i].calls)
	return out
}

// rest is how long the calls take that were not run. The second half of those that
// were went at the pace that goes on: the first one had to start.
func (l *lane) rest(all int) time.Duration {
	left, half := float64(all-l.sent), float64(l.sent-l.sent/2)
	if left <= 0 || l.sent < 2 {
		return 0
	}
	return time.Duration(min(l.lastSent.Sub(l.halfSent).Seconds()/half*left, math.MaxInt64/4e9) * 1e9)
}
