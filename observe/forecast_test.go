package observe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A drive is a run of one lane, second by second.
type drive struct {
	f    forecaster
	p    Snapshot
	work []Work
}

func newDrive(total int) *drive {
	return &drive{p: Snapshot{Began: t0, At: t0, Total: total, Lanes: []Lane{{LaneStatus: machine.LaneStatus{Name: "a"}}}}}
}

// second lets one pass in which so many items end.
func (d *drive) second(ended int, by limiter.Bound) Forecast {
	p := &d.p
	p.At = p.At.Add(time.Second)
	p.Answered += ended
	l := &p.Lanes[0]
	l.Answered, l.Left, l.NextBound = p.Answered, p.Total-p.Answered, by
	d.f.note(&Sample{At: p.At, Elapsed: p.At.Sub(t0).Seconds(), Span: 1, Answered: ended, Bounds: ledgerOf(by)})
	return d.f.forecastEnd(p, d.work)
}

// seconds lets some pass that are alike.
func (d *drive) seconds(n, ended int, by limiter.Bound) (e Forecast) {
	for range n {
		e = d.second(ended, by)
	}
	return e
}

func nearly(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// No end is said before 30 items and 20 s, while the total is unknown, during an outage, and
// when the run is over; of an outage it is said how much work is left.
func TestForecastUnsaid(t *testing.T) {
	d := newDrive(10_000)
	if e := d.seconds(19, 10, limiter.BoundRequests); e.Why != "early" || e.Known {
		t.Errorf("after 19 s: %+v", e)
	}
	if e := d.second(10, limiter.BoundRequests); e.Why != "" || !e.Known {
		t.Errorf("after 20 s: %+v", e)
	}
	slow := newDrive(10_000)
	if e := slow.seconds(29, 1, limiter.BoundRequests); e.Why != "early" {
		t.Errorf("after 29 items: %+v", e)
	}
	if e := slow.second(1, limiter.BoundRequests); !e.Known {
		t.Errorf("after 30 items: %+v", e)
	}
	l := &d.p.Lanes[0]
	l.Breaker, l.Phase, l.Until = limiter.Open, machine.Cooling, d.p.At.Add(time.Hour)
	e := d.seconds(60, 0, limiter.BoundBreaker)
	if e.Known || e.Why != "outage" {
		t.Errorf("in an outage: %+v", e)
	}
	nearly(t, "left", e.Left.Seconds(), 980, 0.01)
	l.Breaker, l.Phase = limiter.Closed, machine.Flowing
	if e := d.second(10, limiter.BoundRequests); !e.Known {
		t.Errorf("after the outage: %+v", e)
	} else {
		nearly(t, "after an outage, which is no time like that to come", e.Likely.Seconds(), 979, 0.01)
	}
	d.p.Total = UnknownTotal
	if e := d.f.forecastEnd(&d.p, nil); e.Why != "total" {
		t.Errorf("without a total: %+v", e)
	}
	d.p.State, d.p.InFlight, d.p.P50, d.p.P95 = Stopped, 1, time.Second, time.Second
	if e := d.f.forecastEnd(&d.p, nil); !e.Known || e.Likely > time.Second {
		t.Errorf("stopped, with a call under way: %+v", e)
	}
	d.p.P50 = 0
	if e := d.f.forecastEnd(&d.p, nil); e.Why != "early" || e.Known {
		t.Errorf("stopped, with a call under way that takes nobody knows how long: %+v", e)
	}
	d.p.State = Over
	if e := d.f.forecastEnd(&d.p, nil); e.Why != "over" || e.Known {
		t.Errorf("over: %+v", e)
	}
}

// A server that is too busy for long is one that is down: that is no time like what is to
// come. Short waves are.
func TestForecastAfterAnOverload(t *testing.T) {
	for _, tt := range []struct {
		busy int
		want float64 // times as long as at the pace between
	}{{40, 1}, {8, 1.3}} {
		d := newDrive(10_000)
		d.seconds(20, 10, limiter.BoundRequests)
		d.seconds(tt.busy-3, 0, limiter.BoundOverload)
		d.seconds(3, 0, limiter.BoundRecovery)
		e := d.seconds(restSeconds, 10, limiter.BoundRequests)
		left := float64(10_000-d.p.Answered) / 10
		nearly(t, fmt.Sprintf("after %d s", tt.busy), e.Likely.Seconds()/left, tt.want, 0.1)
	}
}

// A limit that the user sets, and that the run keeps to, says the end when nothing else does yet;
// one that was learned, one that is not what holds the run back, and one that is not drawn
// do not.
func TestForecastByALimit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		source limiter.Source
		by     limiter.Bound
		used   float64
		known  bool
	}{
		{"told", limiter.Configured, limiter.BoundRequests, 1, true},
		{"seen", limiter.Seen, limiter.BoundRequests, 0.9, true},
		{"learned", limiter.Learned, limiter.BoundRequests, 1, false},
		{"another bound", limiter.Seen, limiter.BoundConcurrency, 1, false},
		{"little used", limiter.Configured, limiter.BoundRequests, 0.5, false},
		{"saved up", limiter.Seen, limiter.BoundRequests, 2, false},
	} {
		d := newDrive(300)
		d.p.Bottleneck.By = tt.by
		l := &d.p.Lanes[0]
		l.View.Limits[0], l.Used[0] = limiter.LimitView{Source: tt.source, Refill: 10}, tt.used
		if e := d.seconds(4, 10, tt.by); e.Known {
			t.Errorf("%s, after 4 s: %+v", tt.name, e)
		}
		e := d.second(10, tt.by)
		if e.Known != tt.known {
			t.Errorf("%s, after 5 s: %+v", tt.name, e)
		}
		if e.Known {
			nearly(t, tt.name, e.Likely.Seconds(), 25, 0.01)
			nearly(t, tt.name+" at most", e.High.Seconds(), 25*math.Exp(z80*limitSpread), 0.01)
		}
	}
}

// An end is no nearer than for as long as nothing has ended.
func TestForecastOfASilentRun(t *testing.T) {
	d := newDrive(301)
	d.seconds(30, 10, limiter.BoundRequests)
	for second := 1; second < 60; second++ {
		if e := d.second(0, limiter.BoundRequests); second >= 5 && e.Likely < time.Second {
			t.Errorf("nothing has ended for %d s: %+v", second, e)
		}
	}
}

// Of several lanes each has its pace without the time in which the computer slept.
func TestForecastOfLanesAfterASleep(t *testing.T) {
	d := newDrive(2000)
	d.work = []Work{{Lane: "a", Items: 1000}, {Lane: "b", Items: 1000}}
	d.p.Lanes = []Lane{{}, {}}
	d.p.Lanes[0].Name, d.p.Lanes[1].Name = "a", "b"
	second := func() Forecast {
		for i := range d.p.Lanes {
			l := &d.p.Lanes[i]
			l.Answered += 5
			l.Left, l.NextBound = 1000-l.Answered, limiter.BoundRequests
		}
		d.p.Answered += 10
		d.p.At = d.p.At.Add(time.Second)
		return d.f.forecastEnd(&d.p, d.work)
	}
	for range 30 {
		second()
	}
	d.p.At, d.p.Ledger = d.p.At.Add(time.Hour), Ledger{limiter.BoundSlept: time.Hour}
	for range 20 {
		second()
	}
	if e := second(); math.Abs(e.Likely.Seconds()-149) > 30 {
		t.Errorf("%+v", e)
	}
}

// Calls that were in flight while the computer slept raise no latency, neither the run's nor a lane's, until all of them
// are too old to be among the answers.
func TestLatenciesAfterASleep(t *testing.T) {
	var s sleeps
	see := func(at time.Duration, slept, p50, p95 time.Duration) (run, lane [2]time.Duration) {
		p := &Snapshot{P50: p50, P95: p95, Lanes: make([]Lane, 1)}
		p.Lanes[0].P50, p.Lanes[0].P95 = p50, p95
		p.At, p.Ledger = time.Unix(1_800_000_000, 0).Add(at), Ledger{limiter.BoundSlept: slept}
		s.capLatencies(p)
		return [2]time.Duration{p.P50, p.P95}, [2]time.Duration{p.Lanes[0].P50, p.Lanes[0].P95}
	}
	const awake, asleep = 2 * time.Second, time.Hour
	for _, c := range []struct {
		at, slept, p50, p95 time.Duration
		run, lane           [2]time.Duration
	}{
		{0, 0, awake, 2 * awake, [2]time.Duration{awake, 2 * awake}, [2]time.Duration{awake, 2 * awake}},
		{asleep, asleep, asleep, 2 * asleep, [2]time.Duration{awake, 2 * awake}, [2]time.Duration{2 * awake, 2 * awake}},
		{asleep + time.Second, asleep, awake / 2, awake, [2]time.Duration{awake / 2, awake}, [2]time.Duration{awake / 2, awake}},
		{asleep + LatencySpan + SpeedSpan + 1, asleep, 3 * awake, 4 * awake, [2]time.Duration{3 * awake, 4 * awake}, [2]time.Duration{3 * awake, 4 * awake}},
	} {
		if run, lane := see(c.at, c.slept, c.p50, c.p95); run != c.run || lane != c.lane {
			t.Errorf("at %v: run %v, lane %v, want %v and %v", c.at, run, lane, c.run, c.lane)
		}
	}
}

// restSeconds is after how many seconds a shown end has moved.
const restSeconds = int(restSpan/time.Second) + 1

// A run of three minutes has a forecast after 20 s, and the forecast is right: blocks are short
// in the beginning.
func TestForecastOfASmallRun(t *testing.T) {
	var all []judged
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d, due, took := newDrive(240), 0.0, 0.0
		var forecasts []said
		for second := 1; d.p.Answered < 240; second++ {
			mean := 240. / 180
			due += mean + math.Sqrt(0.3*mean)*rng.NormFloat64()
			n := min(240-d.p.Answered, max(0, int(due)))
			due -= float64(n)
			e := d.second(n, limiter.BoundRequests)
			if d.p.Answered >= earlyItems && second >= 20 && !e.Known {
				t.Fatalf("nothing said after %d s and %d items: %+v", second, d.p.Answered, e)
			}
			if n := len(d.f.runPace.blocks); second == 25 && n < 4 {
				t.Fatalf("%d blocks after %d s", n, second)
			}
			forecasts, took = append(forecasts, said{float64(second), e}), float64(second)
		}
		all = append(all, judge(forecasts, took))
	}
	table := tabulate(all)
	t.Log(table)
	for k, missed := range []float64{0, 0.10, 0.06, 0.08} {
		if k > 0 && (table.covered[k] < 0.8 || table.missed[k] > missed) {
			t.Errorf("at %.0f %%: held in %.0f %%, missed by %.1f %%", 100*moments[k], 100*table.covered[k], 100*table.missed[k])
		}
	}
	if table.most >= 6 {
		t.Errorf("moved %d times in a minute", table.most)
	}
}

// The interval is the formula's, term by term.
func TestForecastDeviation(t *testing.T) {
	var p pace
	p.span = paceSpan
	rates := []float64{10, 12, 11, 8, 9, 10, 13, 12, 9, 8, 7, 10}
	for _, r := range rates {
		for range 30 {
			p.add(1, amounts{items: r})
		}
	}
	n := float64(len(rates))
	var weight, sum float64
	for i, r := range rates {
		w := 30 * math.Exp2(-(n-float64(i)-0.5)*30/900)
		weight, sum = weight+w, sum+w*r
	}
	mean := sum / weight
	nearly(t, "the rate weighs recent blocks more", p.rate(), mean, 1e-9)
	var v, c float64
	for i, r := range rates {
		v += (r/mean - 1) * (r/mean - 1)
		if i > 0 {
			c += (r/mean - 1) * (rates[i-1]/mean - 1)
		}
	}
	rho := (n*c/v + 4*0.3) / (n + 4)
	noise := (v*30 + 0.5*0.09*30) / (n + 0.5) * (1 + rho) / (1 - rho)
	for _, rest := range []float64{10, 100, 1000, 3600} {
		unseen := 0.012 + 0.016*math.Sqrt(rest/360)
		want := math.Sqrt((noise*(1/rest+1/weight) + unseen*unseen) * (1 + 4/n))
		nearly(t, fmt.Sprint("s of ", rest), p.deviation(rest), min(1, want), 1e-9)
	}
	d := newDrive(100_000)
	d.f.runPace = p
	d.p.Answered, d.p.At = 3000, t0.Add(6*time.Minute)
	e := d.f.forecastEnd(&d.p, nil)
	rest := 97_000 / mean
	nearly(t, "likely", e.Likely.Seconds(), rest, 1e-6)
	s := p.deviation(rest)
	nearly(t, "low", e.Low.Seconds(), rest*math.Exp(-1.28*s), 1e-6)
	nearly(t, "high", e.High.Seconds(), rest*math.Exp(1.28*s), 1e-6)
}

// What drifts slowly is seen in joined blocks, where in single ones chance hides it.
func TestForecastSeesDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var p pace
	for i := range 7200 {
		p.add(1, amounts{items: 2 + 8*rng.NormFloat64() + 0.7*math.Sin(float64(i)/600)})
	}
	mean := p.recent.items / p.weight
	if single, joined := p.noiseOfGroups(1, mean), p.largestNoise(); joined < 1.5*single {
		t.Errorf("%.2f s of noise, and in single blocks %.2f", joined, single)
	}
}

// However long a run: blocks are bounded, and what is known weighs no more than its
// half-life allows.
func TestForecastIsBounded(t *testing.T) {
	d := newDrive(math.MaxInt32)
	d.seconds(20_000, 10, limiter.BoundRequests)
	w := &d.f.runPace
	if len(w.blocks) > mostBlocks || cap(w.blocks) > 2*mostBlocks || w.span != paceSpan {
		t.Errorf("%d blocks of %v s, room for %d", len(w.blocks), w.span, cap(w.blocks))
	}
	nearly(t, "weight", w.weight, 900/math.Ln2, 0.01)
	allocated := testing.AllocsPerRun(100, func() { d.second(10, limiter.BoundRequests) })
	if allocated > 3 { // the test's own ledger
		t.Errorf("%v allocations a second", allocated)
	}
}

// What is shown moves only when it is off by more than a quarter of its half width, and
// then rests for 12 s.
func TestForecastRests(t *testing.T) {
	var f forecaster
	at, half := t0, 40*time.Second
	steps := []struct{ likely, shown time.Duration }{ // ends, as of t0
		{1000 * time.Second, 1000 * time.Second},
		{1010 * time.Second, 1000 * time.Second},
		{990 * time.Second, 1000 * time.Second},
		{1011 * time.Second, 1011 * time.Second},
		{1002 * time.Second, 1011 * time.Second},
		{1000 * time.Second, 1000 * time.Second},
	}
	for i, s := range steps {
		at = at.Add(15 * time.Second)
		if got := at.Add(f.steadyEnd(at, t0.Add(s.likely).Sub(at), half)); !got.Equal(t0.Add(s.shown)) {
			t.Errorf("step %d: %v", i, got.Sub(t0))
		}
	}
	at = at.Add(11 * time.Second)
	if got := at.Add(f.steadyEnd(at, 500*time.Second, half)); !got.Equal(t0.Add(1000 * time.Second)) {
		t.Error("it did not rest")
	}
	at = at.Add(time.Second)
	if got := f.steadyEnd(at, 500*time.Second, half); got != 500*time.Second {
		t.Errorf("it rests: %v", got)
	}
	// Half a minute before the shown end that moves when the likely one is two minutes away.
	at, f.shownAt = f.shownEnd.Add(-30*time.Second), f.shownEnd.Add(-30*time.Second)
	for _, s := range []struct{ likely, shown time.Duration }{{119, 30}, {121, 121}} {
		if got := f.steadyEnd(at, s.likely*time.Second, half); got != s.shown*time.Second {
			t.Errorf("%v is likely, and %v shown", s.likely*time.Second, got)
		}
	}
	at, f.shownAt = f.shownEnd.Add(time.Second), f.shownEnd
	if got := f.steadyEnd(at, 4*time.Second, half); got != 0 {
		t.Errorf("an end that is past is %v away", got)
	}
	if got := f.steadyEnd(at, 5*time.Second, half); got != 5*time.Second {
		t.Errorf("an end that has come and was none is shown %v away", got)
	}
}

// While a lane cools its end is as far as the wait and what is believed of its limits say;
// a limit that was found to be lower counts at once, the more the less was seen.
func TestForecastInACooldown(t *testing.T) {
	d := newDrive(10_000)
	d.seconds(60, 20, limiter.BoundRequests)
	l := &d.p.Lanes[0]
	l.Phase, l.Until = machine.Cooling, d.p.At.Add(101*time.Second)
	l.View.Limits[0] = limiter.LimitView{Source: limiter.Learned, Refill: 10}
	l.Latency = time.Second
	d.p.Concurrency = 64
	e := d.second(0, limiter.BoundCooldown)
	nearly(t, "the end", e.Likely.Seconds(), 100+8800/10., 0.02)
	l.Phase = machine.Ramping
	l.Window = 5 // half of that
	d.f.shownEnd = time.Time{}
	e = d.second(0, limiter.BoundRecovery)
	nearly(t, "the end at half the speed", e.Likely.Seconds(), 8800/(9.7*62/362+5*300/362.), 0.03)
}

// What was saved up at first is soon spent: a known limit on requests is a ceiling.
func TestForecastKnowsTheCeiling(t *testing.T) {
	d := newDrive(10_000)
	d.p.Lanes[0].View.Limits[0] = limiter.LimitView{Source: limiter.Seen, Refill: 5}
	nearly(t, "after a burst", d.seconds(20, 40, limiter.BoundRequests).Likely.Seconds(), 9200/5., 0.001)
}

// The pace of a search is forgotten once it is over, and the wait for the first answer is
// none of the pace, unless calls in flight are what holds the run back.
func TestForecastBegins(t *testing.T) {
	d := newDrive(100_000)
	for i := range 30 {
		d.second(i, limiter.BoundSearch)
	}
	e := d.seconds(60, 50, limiter.BoundRequests)
	nearly(t, "after a search", e.Likely.Seconds(), float64(100_000-d.p.Answered)/50, 0.03)
	d = newDrive(1000)
	d.seconds(30, 0, limiter.BoundRequests)
	nearly(t, "after a long first answer", d.seconds(30, 5, limiter.BoundRequests).Likely.Seconds(), 850/5, 0.03)
	d = newDrive(1000)
	d.seconds(29, 0, limiter.BoundConcurrency)
	nearly(t, "of calls that take long", d.second(60, limiter.BoundConcurrency).Likely.Seconds(), 940/2, 0.03)
}

// Of several lanes the one that ends last gives the end.
func TestForecastNamesTheLatestLane(t *testing.T) {
	work := []Work{{Lane: "a", Items: 3000}, {Lane: "b", Items: 1000}, {Lane: "late", Items: 0}}
	drive := func(work []Work) (e Forecast) {
		var f forecaster
		p := Snapshot{Began: t0, At: t0}
		for _, w := range work {
			p.Total += w.Items
			p.Lanes = append(p.Lanes, Lane{LaneStatus: machine.LaneStatus{Name: w.Lane}, Left: w.Items})
		}
		for range 60 {
			p.At = p.At.Add(time.Second)
			p.Lanes[0].Answered, p.Lanes[1].Answered = p.Lanes[0].Answered+5, p.Lanes[1].Answered+4
			p.Lanes[0].Left, p.Lanes[1].Left = work[0].Items-p.Lanes[0].Answered, work[1].Items-p.Lanes[1].Answered
			p.Answered += 9
			f.note(&Sample{At: p.At, Elapsed: p.At.Sub(t0).Seconds(), Span: 1, Answered: 9})
			e = f.forecastEnd(&p, work)
		}
		return e
	}
	e := drive(work)
	if e.Lane != "a" {
		t.Errorf("%+v", e)
	}
	nearly(t, "the end", e.Likely.Seconds(), 2700/5, 0.02)
	nearly(t, "the others", e.Others.Seconds(), 760/4., 0.02)

	if e := drive([]Work{{Lane: "a", Items: 1000}, {Lane: "b", Items: 3000}}); e.Lane != "b" {
		t.Errorf("the second is the latest: %+v", e)
	}
	work[2].Items = 9000
	e = drive(work)
	if e.Lane != "" || e.Others != 0 {
		t.Errorf("of a lane that has not begun: %+v", e)
	}
	nearly(t, "the end with a lane that has not begun", e.Likely.Seconds(), (2700+760+9000)/9., 0.02)
}

// Where tokens are what is limited the rest takes longer if its items are larger.
func TestForecastCountsBytes(t *testing.T) {
	for by, want := range map[limiter.Bound]float64{
		limiter.BoundRequests: 900 / 2., limiter.BoundInputTokens: 3 * 900 / 2., limiter.BoundTokens: (3*100 + 50) / 150. * 900 / 2,
	} {
		d := newDrive(1000)
		d.work = []Work{{Lane: "a", Items: 1000, Bytes: 100*400 + 900*1200}}
		l := &d.p.Lanes[0]
		var e Forecast
		for range 50 {
			d.p.At = d.p.At.Add(time.Second)
			d.p.Answered += 2
			l.Left, l.LeftBytes = 1000-d.p.Answered, d.work[0].Bytes-400*int64(d.p.Answered)
			d.f.note(&Sample{Elapsed: d.p.At.Sub(t0).Seconds(), Span: 1, Answered: 2, InputTokens: 200, OutputTokens: 100, Bounds: ledgerOf(by)})
			e = d.f.forecastEnd(&d.p, d.work)
		}
		nearly(t, string(by), e.Likely.Seconds(), want, 0.03)
	}
}

// The last of n calls takes as long as the mathematics says: half of all times longer.
func TestForecastOfTheLastCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	p50, sigma := 2*time.Second, 0.6
	p95 := time.Duration(float64(p50) * math.Exp(z95*sigma))
	for _, n := range []int{1, 5, 30, 200} {
		var last []float64
		for range 500 {
			// Calls leave evenly, n of them at any time; what is under way after a long time is looked at.
			gap := 2 * math.Exp(sigma*sigma/2) / float64(n)
			most := 0.0
			for at := 0.0; at < 30; at += gap {
				most = max(most, 2*math.Exp(sigma*rng.NormFloat64())-at-gap*rng.Float64())
			}
			last = append(last, most)
		}
		slices.Sort(last)
		got := lastCalls(n, p50, p95)
		if want := last[len(last)/2]; math.Abs(got-want) > 0.25+0.2/float64(n) {
			t.Errorf("%d calls: %.2f s, seen %.2f", n, got, want)
		}
	}
	if lastCalls(0, p50, p95) != 0 || lastCalls(5, 0, 0) != 0 || lastCalls(5, p50, p50) > p50.Seconds()*1.1 || lastCalls(1, 100*time.Millisecond, 100*time.Millisecond) > 0.11 {
		t.Error("of none, of unknown ones, of equal ones, of quick ones")
	}
	d := newDrive(1000)
	d.seconds(60, 16, limiter.BoundRequests)
	d.p.InFlight, d.p.P50, d.p.P95 = 40, 10*time.Second, 20*time.Second
	if e := d.second(0, limiter.BoundTail); e.Likely < 15*time.Second || e.Likely > 30*time.Second {
		t.Errorf("40 calls of 10 to 20 s: %v", e.Likely)
	}
	d.p.State, d.p.InFlight = Draining, 3
	d.f.shownEnd = time.Time{}
	if e := d.second(0, limiter.BoundDraining); !e.Known || e.Likely > 15*time.Second || e.Likely < 3*time.Second {
		t.Errorf("3 calls of 10 to 20 s: %+v", e)
	}
}

// The shown end lies in its interval, also while it rests and the estimate has moved on.
func TestForecastLiesWithin(t *testing.T) {
	for _, shown := range []time.Duration{20 * time.Minute, 100 * time.Hour} {
		d := newDrive(20_000)
		d.seconds(300, 10, limiter.BoundRequests)
		d.f.shownEnd, d.f.shownAt = d.p.At.Add(shown), d.p.At
		if e := d.second(10, limiter.BoundRequests); e.Likely != shown-time.Second || e.Low > e.Likely || e.Likely > e.High {
			t.Errorf("%v is shown: %+v", shown, e)
		}
	}
}

// The last item takes its time, too.
func TestForecastOfTheLastItem(t *testing.T) {
	d := newDrive(31)
	if e := d.seconds(30, 1, limiter.BoundRequests); !e.Known || e.Likely < 500*time.Millisecond || e.Likely > 2*time.Second {
		t.Errorf("%+v", e)
	}
}

// Of each of several lanes it is known for how long which limit on tokens held it.
func TestForecastKnowsTheBoundOfALane(t *testing.T) {
	f := forecaster{lanes: map[string]*laneForecast{}}
	p := Snapshot{At: t0}
	l := Lane{LaneStatus: machine.LaneStatus{Name: "a"}, Answered: 1}
	for _, by := range []limiter.Bound{limiter.BoundTokens, limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundRequests, limiter.BoundInputTokens, limiter.BoundInputTokens, limiter.BoundInputTokens} {
		p.At, l.NextBound = p.At.Add(time.Second), by
		f.noteLane(&p, &l)
	}
	a, span := f.lanes["a"].pace.now() // of all but the first snapshot
	nearly(t, "by input tokens", a.byInput/span, 4./6, 0.01)
	nearly(t, "by tokens", a.byTokens/span, 1./6, 0.01)
}

// A limit of less than one a second limits.
func TestForecastKnowsSlowLimits(t *testing.T) {
	l := Lane{LaneStatus: machine.LaneStatus{Draw: limiter.Cost{Requests: 1, Input: 0.5}}}
	if most := rateOfLimits(&l); !math.IsInf(most, 1) {
		t.Errorf("nothing is known: %v", most)
	}
	l.View.Limits[0] = limiter.LimitView{Source: limiter.Learned, Refill: 0.5, Others: 0.1}
	nearly(t, "by requests", rateOfLimits(&l), 0.4, 1e-9)
	l.View.Limits[2] = limiter.LimitView{Source: limiter.Learned, Refill: 0.1}
	nearly(t, "by tokens", rateOfLimits(&l), 0.2, 1e-9)
}

// ledgerOf is a second of that bound.
func ledgerOf(by limiter.Bound) (l Ledger) {
	l[by] = time.Second
	return l
}
