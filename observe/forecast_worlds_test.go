package observe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A course is a run as a forecaster sees it: how many items ended in each second, to the
// last one.
type course struct {
	ended []int
	total int
	took  float64 // seconds, to the end of the last item
}

// The kinds of synthetic worlds: how fast items end, as a factor, from second to second.
var kinds = []struct {
	name  string
	speed func(*rand.Rand) func(second int) float64
}{
	{"steady", steady}, {"waves", waves}, {"drift", drift}, {"bursts", bursts},
}

func steady(*rand.Rand) func(int) float64 { return func(int) float64 { return 1 } }

// waves of refusals: nothing for 5 to 60 s, each few minutes, and a ramp after it.
func waves(rng *rand.Rand) func(int) float64 {
	gap, cool, ramp := between(rng, 120, 600), between(rng, 5, 60), between(rng, 10, 60)
	until, climbed := 0.0, 0.0
	next := gap * rng.ExpFloat64()
	return func(second int) float64 {
		now := float64(second)
		if now >= next {
			until = now + cool*math.Exp(rng.NormFloat64()/2)
			climbed = until + ramp
			next = climbed + gap*(0.5+rng.Float64())
		}
		switch {
		case now < until:
			return 0
		case now < climbed:
			return 1 - 0.8*(climbed-now)/ramp
		}
		return 1
	}
}

// drift of the limit: the logarithm of the speed wanders, within 10 to 30 %, in 10 to 60 min.
func drift(rng *rand.Rand) func(int) float64 {
	spread, memory := between(rng, 0.05, 0.2), between(rng, 1200, 3600)
	x := spread * rng.NormFloat64()
	return func(int) float64 {
		x += -x/memory + spread*math.Sqrt(2/memory)*rng.NormFloat64()
		return math.Exp(x)
	}
}

// bursts of a neighbour, who takes 30 to 70 % for 20 s to 3 min, and is away as long.
func bursts(rng *rand.Rand) func(int) float64 {
	takes, on, off := between(rng, 0.3, 0.7), between(rng, 20, 180), between(rng, 20, 180)
	there, until := rng.IntN(2) == 0, 0.0
	return func(second int) float64 {
		for until <= float64(second) {
			there = !there
			if there {
				until += on * rng.ExpFloat64()
			} else {
				until += off * rng.ExpFloat64()
			}
		}
		if there {
			return 1 - takes
		}
		return 1
	}
}

func between(rng *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, rng.Float64())
}

// newCourse is a run of the least minutes to 6 hours, at one item each two seconds to 50 a
// second, which vary by a twentieth to a half of what chance alone would do: behind a limit
// or a ceiling on calls in flight they leave more evenly.
func newCourse(speed func(*rand.Rand) func(int) float64, least, seed uint64) course {
	rng := rand.New(rand.NewPCG(seed, 12))
	rate, span, spread := between(rng, 0.5, 50), between(rng, 60*float64(least), 6*3600), between(rng, 0.05, 0.5)
	c := course{total: max(100, int(rate*span))}
	at, due := speed(rng), 0.0
	for left := c.total; left > 0; {
		mean := rate * at(len(c.ended))
		due += mean + math.Sqrt(spread*mean)*rng.NormFloat64()
		n := max(0, int(due))
		due -= float64(n)
		if n >= left {
			c.took = float64(len(c.ended)) + float64(left)/float64(n+1)
			n = left
		}
		left -= n
		c.ended = append(c.ended, n)
	}
	return c
}

// The moments at which forecasts are judged.
var moments = []float64{0.10, 0.25, 0.50, 0.75}

// A judged course: at each moment whether the end was within the interval, and by which
// part of the rest it was missed; NaN where none was said.
type judged struct {
	covered [4]bool
	missed  [4]float64
	changes int // of the shown end
	most    int // in any minute
	minutes float64
}

// said is the forecast of one moment, at in seconds since the run began.
type said struct {
	at float64
	Forecast
}

// judge holds what was said against when the run ended.
func judge(all []said, took float64) (j judged) {
	var moved []float64
	shown := math.NaN()
	for _, s := range all {
		if !s.Known {
			continue
		}
		j.minutes += 1. / 60
		if end := s.at + s.Likely.Seconds(); s.Likely > 0 && !(math.Abs(end-shown) < 1e-3) {
			shown, moved = end, append(moved, s.at)
		}
	}
	j.changes, j.most = len(moved), mostAMinute(moved)
	for k, m := range moments {
		j.missed[k] = math.NaN()
		i := slices.IndexFunc(all, func(s said) bool { return s.at >= m*took })
		if i < 0 || !all[i].Known || all[i].at >= took {
			continue
		}
		left, s := took-all[i].at, all[i]
		j.covered[k] = s.Low.Seconds() <= left && left <= s.High.Seconds()
		j.missed[k] = math.Abs(s.Likely.Seconds()-left) / left
	}
	return j
}

func mostAMinute(moved []float64) (most int) {
	for i := range moved {
		n := 0
		for n <= i && moved[i-n] > moved[i]-60 {
			n++
		}
		most = max(most, n)
	}
	return most
}

// forecasts are what is said each second of a course.
func (c *course) forecasts() (all []said) {
	var f forecaster
	p := Snapshot{Began: t0, Total: c.total}
	for i, n := range c.ended {
		now := float64(i + 1)
		p.Answered += n
		p.At = t0.Add(seconds(now))
		f.note(&Sample{At: p.At, Elapsed: now, Span: 1, Answered: n})
		all = append(all, said{now, f.forecastEnd(&p, nil)})
	}
	return all
}

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A table of how often the interval held, and the median miss, at each moment.
type table struct {
	said, covered, missed [4]float64
	changes               float64 // a minute, the most of any world
	most                  int     // in any minute of any world
}

func tabulate(all []judged) (t table) {
	for k := range moments {
		var missed []float64
		for _, j := range all {
			if math.IsNaN(j.missed[k]) {
				continue
			}
			missed = append(missed, j.missed[k])
			if j.covered[k] {
				t.covered[k]++
			}
		}
		slices.Sort(missed)
		t.said[k] = float64(len(missed))
		t.covered[k] /= t.said[k]
		t.missed[k] = missed[len(missed)/2]
	}
	for _, j := range all {
		t.changes = max(t.changes, float64(j.changes)/max(1, j.minutes))
		t.most = max(t.most, j.most)
	}
	return t
}

func (t table) String() (s string) {
	for k, m := range moments {
		s += fmt.Sprintf("%.0f %%: held %3.0f %% missed %4.1f %% of %.0f   ", 100*m, 100*t.covered[k], 100*t.missed[k], t.said[k])
	}
	return s + fmt.Sprintf("changes a minute: %.1f, at most %d", t.changes, t.most)
}

// within holds a table against what is promised: the interval is meant for 80 %.
func (t table) within(tt *testing.T, steady bool, missed, slack float64) {
	tt.Helper()
	for k, m := range moments {
		if t.covered[k] < 0.70-slack || !steady && t.covered[k] > 0.97+slack {
			tt.Errorf("at %.0f %%: the interval held in %.0f %%", 100*m, 100*t.covered[k])
		}
		if t.missed[k] > missed*(1+10*slack) {
			tt.Errorf("at %.0f %%: missed by %.1f %%, in half of all worlds", 100*m, 100*t.missed[k])
		}
	}
	if t.most >= 7 { // five by its rest, and one whose moment comes while the run goes on
		tt.Errorf("the shown end has changed %d times in a minute", t.most)
	}
}

// worldsOf returns the number of worlds drawn of each kind, and the first seed. WORLDS and
// SEED override them.
func worldsOf(t *testing.T, usual int) (n int, seed uint64) {
	n, seed = usual, 1
	if k, err := strconv.Atoi(os.Getenv("WORLDS")); err == nil {
		n = k
	}
	if k, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = k
	}
	t.Logf("%d worlds of each kind, from seed %d on", n, seed)
	return n, seed
}

// By how much a share of few worlds may be off, beyond what is promised of many.
func slackOf(worlds int) float64 {
	if worlds >= 200 {
		return 0
	}
	return 0.05
}

var promised = map[string]float64{"steady": 0.02, "waves": 0.06, "drift": 0.06, "bursts": 0.08}

// In runs of 10 minutes to 6 hours, at a tenth, a quarter, a half and three quarters of
// them: the truth lies within the interval in 70 % at least, and where nothing is steady in
// 97 % at most, as else it would be too wide to be of use.
func TestForecastHolds(t *testing.T) {
	n, seed := worldsOf(t, 40)
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var all []judged
			for i := range n {
				c := newCourse(kind.speed, 10, seed+uint64(i))
				all = append(all, judge(c.forecasts(), c.took))
			}
			table := tabulate(all)
			t.Log(kind.name, table)
			table.within(t, kind.name == "steady", promised[kind.name], slackOf(n))
		})
	}
}
