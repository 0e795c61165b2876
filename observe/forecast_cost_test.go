package observe

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// What a run costs in all is known within its interval in four of five runs, also where
// single items differ by much.
func TestInAllHolds(t *testing.T) {
	const items = 3000
	for _, share := range []float64{0.1, 0.5, 0.9} {
		within := 0
		for seed := range uint64(300) {
			rng := rand.New(rand.NewPCG(seed, 8))
			d := newDrive(items)
			all, e := 0.0, Estimate{}
			for k := range items / 10 {
				usd := 0.0
				for range 10 {
					usd += 0.001 * math.Exp(rng.NormFloat64())
				}
				all += usd
				if float64(k) > share*items/10 {
					continue
				}
				d.p.Answered += 10
				d.p.Spent.USD, d.p.Spent.Priced = all, d.p.Answered
				d.f.note(&Sample{Span: 1, Answered: 10, USD: usd})
				e = d.f.estimateCost(&d.p, nil)
			}
			if !e.Known {
				t.Fatal("not known")
			}
			if math.Abs(e.Likely-all) <= e.PlusMinus {
				within++
			}
		}
		if within < 210 || within > 265 {
			t.Errorf("after %.0f %%: the interval held in %d of 300", 100*share, within)
		}
	}
}

// Not known is what a run costs in all while the total is not, before 30 items, without a
// price, and where the rest is not to be done; when it is over, it is what it cost.
func TestInAllUnknown(t *testing.T) {
	known := func(change func(*Snapshot)) Estimate {
		d := newDrive(100)
		d.p.Answered, d.p.Spent = 50, Spent{USD: 5, Priced: 50}
		d.f.note(&Sample{Span: 1, Answered: 50, USD: 5})
		change(&d.p)
		return d.f.estimateCost(&d.p, nil)
	}
	if e := known(func(*Snapshot) {}); !e.Known || math.Abs(e.Likely-10) > 1e-9 {
		t.Errorf("%+v", e)
	}
	for name, change := range map[string]func(*Snapshot){
		"total":    func(p *Snapshot) { p.Total = UnknownTotal },
		"early":    func(p *Snapshot) { p.Answered = 29 },
		"price":    func(p *Snapshot) { p.Spent.Priced = 0 },
		"draining": func(p *Snapshot) { p.State = Draining },
		"stopped":  func(p *Snapshot) { p.State = Stopped },
	} {
		if e := known(change); e.Known {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if e := known(func(p *Snapshot) { p.State = Over }); !e.Known || e.Likely != 5 || e.PlusMinus != 0 {
		t.Errorf("over: %+v", e)
	}
}

// The part that goes by the tokens asked with counts by bytes: what is left may be larger.
func TestInAllCountsBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	d := newDrive(1000)
	d.work = []Work{{Lane: "a", Items: 1000, Bytes: 100*400 + 900*1200}}
	l := &d.p.Lanes[0]
	for range 50 {
		in, out := int64(200), int64(50+rng.IntN(100))
		usd := 1e-3*float64(in) + 4e-3*float64(out)
		d.p.Answered += 2
		d.p.Spent.USD += usd
		d.p.Spent.Priced = d.p.Answered
		l.Left, l.LeftBytes = 1000-d.p.Answered, d.work[0].Bytes-400*int64(d.p.Answered)
		d.f.note(&Sample{Span: 1, Answered: 2, InputTokens: in, OutputTokens: out, USD: usd})
	}
	e := d.f.estimateCost(&d.p, d.work)
	output := d.p.Spent.USD - 1e-3*200*50
	nearly(t, "in all", e.Likely, d.p.Spent.USD+900*(3*0.1+output/100), 0.02)
}

// Lanes have prices of their own.
func TestInAllByLane(t *testing.T) {
	var f forecaster
	work := []Work{{Lane: "dear", Items: 1000}, {Lane: "cheap", Items: 200}}
	p := Snapshot{Began: t0, At: t0, Total: 1200}
	for _, w := range work {
		p.Lanes = append(p.Lanes, Lane{LaneStatus: machine.LaneStatus{Name: w.Lane}, Left: w.Items})
	}
	for second := range 40 {
		p.At = p.At.Add(time.Second)
		usd := 0.0
		for i, price := range []float64{1, 0.01} {
			l := &p.Lanes[i]
			if second > 0 { // a lane is followed from the first snapshot of it on
				l.Answered, l.Left = l.Answered+2, l.Left-2
				l.Spent.USD += 2 * price
				usd += 2 * price
			}
		}
		p.Answered = p.Lanes[0].Answered + p.Lanes[1].Answered
		p.Spent.USD, p.Spent.Priced = p.Spent.USD+usd, p.Answered
		f.note(&Sample{Span: 1, Answered: 4, USD: usd})
		f.forecastEnd(&p, work)
	}
	nearly(t, "in all", f.estimateCost(&p, work).Likely, 1000+2, 0.001)
}
