package chart

import (
	"encoding/xml"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func span(from, to int) Span {
	return Span{noon.Add(time.Duration(from) * time.Second), noon.Add(time.Duration(to) * time.Second)}
}

// An axis shows runs in the ratio of their lengths, and a gap that is longer than a tenth of them shorter.
func TestAxisShortensGaps(t *testing.T) {
	a := NewAxis([]Span{span(0, 60), span(86400, 86440)}, time.UTC)
	first, gap, second := a.X(noon.Add(time.Minute))-a.X(noon), a.X(span(86400, 0).From)-a.X(noon.Add(time.Minute)), a.X(span(0, 86440).To)-a.X(span(86400, 0).From)
	if math.Abs(first/second-1.5) > 1e-6 || math.Abs(gap/(first+second)-0.1) > 1e-6 {
		t.Errorf("%v, gap %v, %v", first, gap, second)
	}
	if end := a.X(span(0, 86440).To); math.Abs(end-(width-right)) > 1e-6 || a.X(noon.Add(-time.Hour)) != left || a.X(noon.Add(1000*time.Hour)) != end {
		t.Errorf("it ends at %v", end)
	}
}

// Labels of the time are round in the zone, and stand apart.
func TestTicks(t *testing.T) {
	zone := time.FixedZone("", 5*3600+1800)
	for _, seconds := range []int{1, 59, 107, 145, 3600, 86400, 3 * 86400, 5 * 86400, 7 * 86400, 400 * 86400} {
		for _, from := range []int{0, seconds / 60, seconds / 45, seconds / 30} {
			list := NewAxis([]Span{span(-from, seconds-from)}, zone).ticks()
			if len(list) == 0 && seconds > 1 || len(list) > mostTicks {
				t.Errorf("%d s: %d ticks", seconds, len(list))
			}
			for k, at := range list {
				end := 0.0
				if k > 0 {
					_, end = extent(list[k-1])
				}
				if begin, _ := extent(at); begin < end+3 || strings.HasSuffix(at.text, ":00") && seconds == 3600 && !strings.Contains(at.text, ":") {
					t.Errorf("%d s: %+v", seconds, list)
				}
			}
		}
	}
	day := NewAxis([]Span{span(0, 2*86400)}, zone).ticks()
	if day[0].text != "22 Nov 00:00" && !strings.HasSuffix(day[0].text, ":00") {
		t.Errorf("%+v", day)
	}
}

// extent returns where the label of a tick begins and ends: a digit is 7 units wide.
func extent(of tick) (begin, end float64) {
	long := 7 * float64(len(of.text))
	if of.atEdge() {
		return of.x, of.x + long
	}
	return of.x - long/2, of.x + long/2
}

// A plot is well-formed, of numbers that a browser takes, whatever the values and the times are.
func TestOddValues(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	odd := []float64{0, 1, -5, 1e308, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 1e-9, 12345678}
	for range 2000 {
		var (
			runs   []Span
			points []Span
			at     int
		)
		for range 1 + chance.IntN(4) {
			from := at + chance.IntN(100_000) - 20
			at = from + chance.IntN(1000) - 5
			runs, points = append(runs, span(from, at)), append(points, span(from, at))
		}
		p := Plot{Title: `<b>"&'`, Desc: "]]>", Points: points, Label: func(v float64) string { return "<" + number(v) }}
		b := Band{Title: "<", Desc: "&", Points: points}
		for look := Line; look <= Rug; look++ {
			s := Series{Look: look}
			for range points {
				s.Values = append(s.Values, odd[chance.IntN(len(odd))])
			}
			p.Series = append(p.Series, s)
		}
		for range points {
			b.Shares = append(b.Shares, []float64{chance.Float64(), 1 - chance.Float64(), 0.99})
		}
		a := NewAxis(runs, time.UTC)
		for _, svg := range []string{p.SVG(a), b.SVG(a)} {
			if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
				t.Fatalf("%v\n%s", err, svg)
			}
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || len(svg) > 20_000 {
				t.Fatalf("%d bytes: %s", len(svg), svg)
			}
		}
	}
}

// A line breaks where its value is not known, and where nothing ran.
func TestPathBreaks(t *testing.T) {
	p := Plot{Points: []Span{span(0, 10), span(10, 20), span(20, 30), span(600, 610)}, Label: number, Series: []Series{{Line, []float64{1, 1, math.NaN(), 1}}}}
	svg := p.SVG(NewAxis([]Span{span(0, 30), span(600, 610)}, time.UTC))
	if n := strings.Count(svg[strings.Index(svg, `class="l1"`):], "M"); n != 2 {
		t.Errorf("%d pieces: %s", n, svg)
	}
}

// A limit that lies far above all values does not press them to the ground.
func TestFarLimit(t *testing.T) {
	p := Plot{Points: []Span{span(0, 10)}, Series: []Series{{Area, []float64{10}}, {Dashed, []float64{1000}}}}
	if p.most() != 10 {
		t.Error(p.most())
	}
	if p.Series[1].Values[0] = 20; p.most() != 20 {
		t.Error(p.most())
	}
}

// A strip that one thing holds throughout is one box, however many points it has.
func TestBandMerges(t *testing.T) {
	b := Band{}
	for k := range 300 {
		b.Points, b.Shares = append(b.Points, span(k, k+1)), append(b.Shares, []float64{1})
	}
	if svg := b.SVG(NewAxis([]Span{span(0, 300)}, time.UTC)); len(svg) > 2500 {
		t.Errorf("%d bytes", len(svg))
	}
}
