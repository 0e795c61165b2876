package chart

import (
	"slices"
	"time"
)

// The width of a plot, and of what stands around its middle, in the units of its view box. At 720
// units a plot on paper has letters of a readable size, and needs little scrolling on a telephone.
const (
	width  = 720
	left   = 56 // the labels of the y axis
	right  = 10
	inside = width - left - right
)

// A Span is the time from one moment to another.
type Span struct{ From, To time.Time }

// An Axis is the time axis that plots share. Times at which nothing ran are shown shorter if they
// are longer than a tenth of all the rest.
type Axis struct {
	Marks []time.Time // moments that each plot shows as a line

	zone   *time.Location
	pieces []piece
}

// piece is a part of the axis: from here to there the time flows evenly.
type piece struct {
	Span
	x0, x1 float64
	gap    bool // nothing ran
}

// mostOfGap is the share of the running time that a gap takes at most.
const mostOfGap = 0.1

// leastSpan keeps an axis of no length from dividing by it.
const leastSpan = 0.001

// NewAxis returns the axis of runs, the oldest first. Moments are shown in the zone.
func NewAxis(runs []Span, zone *time.Location) *Axis {
	a := &Axis{zone: zone}
	var ran float64
	for _, r := range runs {
		ran += r.seconds()
	}
	all := 0.0
	var lengths []float64
	for k, r := range runs {
		if k > 0 {
			gap := Span{runs[k-1].To, r.From}
			length := min(gap.seconds(), mostOfGap*ran)
			a.pieces, lengths, all = append(a.pieces, piece{Span: gap, gap: true}), append(lengths, length), all+length
		}
		length := max(leastSpan, r.seconds())
		a.pieces, lengths, all = append(a.pieces, piece{Span: r}), append(lengths, length), all+length
	}
	x := float64(left)
	for k := range a.pieces {
		a.pieces[k].x0 = x
		x += lengths[k] / all * inside
		a.pieces[k].x1 = x
	}
	return a
}

// seconds returns the length of a span; one that runs backwards has none.
func (s Span) seconds() float64 { return max(0, s.To.Sub(s.From).Seconds()) }

// X returns the place of a moment. One that lies outside is at the nearest end.
func (a *Axis) X(t time.Time) float64 {
	for k := range a.pieces {
		p := &a.pieces[k]
		if t.Before(p.From) {
			return p.x0
		}
		if length := p.seconds(); !t.After(p.To) && length > 0 {
			return p.x0 + (p.x1-p.x0)*t.Sub(p.From).Seconds()/length
		}
	}
	if n := len(a.pieces); n > 0 {
		return a.pieces[n-1].x1
	}
	return left
}

// tick is a labelled moment.
type tick struct {
	x    float64
	text string
}

// steps are the distances of ticks that people can read, in seconds.
var steps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000}

// mostTicks bounds the ticks of an axis.
const mostTicks = 24

// apart returns the distance of ticks at which labels of that form stand apart.
func apart(layout string) float64 { return max(62, 7.5*float64(len(layout)+1)) } // a day may have a digit more than its form

// ticks returns round moments of the runs.
func (a *Axis) ticks() (list []tick) {
	scale := 0.0 // units a second, where the time flows fastest
	for _, p := range a.pieces {
		if s := p.seconds(); !p.gap && s > 0 {
			scale = max(scale, (p.x1-p.x0)/s)
		}
	}
	step := steps[len(steps)-1]
	if k := slices.IndexFunc(steps, func(s float64) bool { return s*scale >= apart(layout(s)) }); k >= 0 {
		step = steps[k]
	}
	every, least := time.Duration(step*float64(time.Second)), apart(layout(step))
	for _, p := range a.pieces {
		if p.gap {
			continue
		}
		_, offset := p.From.In(a.zone).Zone()
		shift := time.Duration(offset) * time.Second // so that days begin at midnight of the zone
		at := p.From.Add(shift).Truncate(every).Add(-shift)
		for ; !at.After(p.To) && len(list) < mostTicks; at = at.Add(every) {
			x := a.X(at)
			if at.Before(p.From) || x > width-right-20 || len(list) > 0 && x < list[len(list)-1].x+least-10 {
				continue
			}
			list = append(list, tick{x, at.In(a.zone).Format(layout(step))})
		}
	}
	if len(list) > 1 && list[0].atEdge() && list[1].x < list[0].x+1.5*least-10 {
		list = list[1:]
	}
	return list
}

// atEdge reports whether a label has no room at the left of its moment.
func (t tick) atEdge() bool { return t.x < left+20 }

// layout returns the form of labels that are so many seconds apart.
func layout(step float64) string {
	switch {
	case step < 60:
		return "15:04:05"
	case step < 43200:
		return "15:04"
	case step < 86400:
		return "2 Jan 15:04"
	}
	return "2 Jan"
}
