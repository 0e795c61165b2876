package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Look is the way in which a series is drawn.
type Look int

// The looks.
const (
	Line   Look = iota
	Area        // filled down to zero
	Second      // a line in the second colour
	Dashed      // the second colour, dashed: a limit
	Dotted      // grey, dotted: a ceiling
	Rug         // red ticks at the foot, where the value is above zero
)

// looks holds the class and the attributes of each look.
var looks = [...]struct{ class, attributes string }{
	Line:   {"l1", `fill="none" stroke="#1f6f8b" stroke-width="1.5"`},
	Area:   {"a1", `fill="#1f6f8b" fill-opacity=".25" stroke="#1f6f8b"`},
	Second: {"l2", `fill="none" stroke="#a35200" stroke-width="1.5"`},
	Dashed: {"l3", `fill="none" stroke="#a35200" stroke-width="1.5" stroke-dasharray="6 3"`},
	Dotted: {"l4", `fill="none" stroke="#5c6670" stroke-width="1.2" stroke-dasharray="2 3"`},
	Rug:    {"l5", `fill="none" stroke="#b3261e" stroke-width="1.5"`},
}

// colours are those of the parts of a band, by class b0, b1, …. Neighbours differ in brightness too.
var colours = [...]string{"#4c8fb3", "#e0a33e", "#5f8a3f", "#9b7fb8", "#d9694f", "#8e2b2b", "#2f5d62", "#c9cdd2"}

// Parts is the number of parts of a band that have colours of their own; the last is for all others.
const Parts = len(colours)

// A Series is one value over the time, a number for each point; NaN where it is not known.
type Series struct {
	Look   Look
	Values []float64
}

// Plot is a diagram of several series.
type Plot struct {
	Title, Desc string
	Height      float64 // of the diagram, without the labels below; 0: usualHeight
	Points      []Span  // in the order of time
	Series      []Series
	Label       func(float64) string // shows a value on the y axis
}

const (
	usualHeight = 96
	above       = 8
	below       = 20 // the labels of the time
)

// SVG paints the plot.
func (p *Plot) SVG(a *Axis) string {
	height := p.Height
	if height == 0 {
		height = usualHeight
	}
	most := p.most()
	step := round(most)
	rules := int(min(mostRules, max(1, math.Ceil(most/step))))
	top := step * float64(rules)
	y := func(v float64) float64 { return above + height*(1-min(1, max(0, v/top))) }
	b := begin(p.Title, p.Desc, height)
	for k := range rules + 1 {
		v := step * float64(k)
		rule(b, left, y(v), width-right, y(v))
		label(b, left-6, y(v)+4, "end", p.Label(v))
	}
	axis(b, a, height)
	for _, s := range p.Series {
		path(b, s.Look, p.path(a, &s, height, top, y))
	}
	b.WriteString("</svg>")
	return b.String()
}

// mostRules bounds the lines of a grid, above its ground.
const mostRules = 6

// greatest is beyond all that is worth drawing; behind it sums overflow.
const greatest = 1e300

// isKnown reports whether a value can be drawn.
func isKnown(v float64) bool { return math.Abs(v) <= greatest }

// room is the greatest share of the diagram that a limit takes above all values: one that lies far off would
// press them to the ground.
const room = 3

// most returns the greatest value that is drawn. Limits beyond it lie outside.
func (p *Plot) most() float64 {
	values, limits := 0.0, 0.0
	for _, s := range p.Series {
		for _, v := range s.Values {
			switch {
			case s.Look == Rug || !isKnown(v):
			case s.Look == Dashed || s.Look == Dotted:
				limits = max(limits, v)
			default:
				values = max(values, v)
			}
		}
	}
	if values == 0 || limits <= room*values {
		return max(values, limits)
	}
	return values
}

// path returns the path of a series. It breaks where nothing is known, and where nothing ran.
func (p *Plot) path(a *Axis, s *Series, height, top float64, y func(float64) float64) string {
	var b strings.Builder
	open, end := false, 0.0 // whether a line is under way, and where it is
	shut := func() {
		if open && s.Look == Area {
			fmt.Fprintf(&b, "V%sz", number(above+height))
		}
		open = false
	}
	for k := range p.Points {
		v := math.NaN()
		if k < len(s.Values) {
			v = s.Values[k]
		}
		x0, x1 := a.X(p.Points[k].From), a.X(p.Points[k].To)
		if s.Look == Rug {
			if v > 0 {
				fmt.Fprintf(&b, "M%s %sv-7", number((x0+x1)/2), number(above+height))
			}
			continue
		}
		if !isKnown(v) || v > top {
			shut()
			continue
		}
		if open && p.Points[k].From.Sub(p.Points[k-1].To) > pause && x0 > end+0.5 {
			shut()
		}
		if !open {
			if s.Look == Area {
				fmt.Fprintf(&b, "M%s %sV%s", number(x0), number(above+height), number(y(v)))
			} else {
				fmt.Fprintf(&b, "M%s %s", number(x0), number(y(v)))
			}
			fmt.Fprintf(&b, "H%s", number(x1))
		} else {
			fmt.Fprintf(&b, "V%sH%s", number(y(v)), number(x1))
		}
		open, end = true, x1
	}
	shut()
	return b.String()
}

// pause is the time without points after which a line begins anew.
const pause = 2 * time.Second

// round returns a step of 1, 2 or 5 times a power of ten, so that two to four of them reach the value.
func round(most float64) float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/2)))
	if power == 0 || math.IsInf(power, 0) {
		return most
	}
	for _, k := range []float64{5, 2} {
		if k*power <= most/2 {
			return k * power
		}
	}
	return power
}

// A Band shows what a time consisted of, as a stacked strip.
type Band struct {
	Title, Desc string
	Points      []Span
	Shares      [][]float64 // of each point: by part, at most Parts; together at most 1
}

// bandHeight is the height of the strip.
const bandHeight = 44

// whole is the share from which on a part is drawn as if it were all: the rest would not be seen.
const whole = 0.99

// SVG paints the band.
func (p *Band) SVG(a *Axis) string {
	b := begin(p.Title, p.Desc, bandHeight)
	axis(b, a, bandHeight)
	var parts [Parts]strings.Builder
	box := func(part int, x0, x1, y, h float64) {
		fmt.Fprintf(&parts[part], "M%s %sH%sv%sH%sz", number(x0), number(y), number(x1), number(h), number(x0))
	}
	alone, from, to := -1, 0.0, 0.0 // a part that takes several neighbours whole
	flush := func() {
		if alone >= 0 {
			box(alone, from, to, above, bandHeight)
		}
		alone = -1
	}
	for k := range p.Points {
		x0, x1 := a.X(p.Points[k].From), a.X(p.Points[k].To)
		only := -1
		for part, share := range p.Shares[k] {
			if share >= whole {
				only = part
			}
		}
		if only >= 0 && only == alone && x0 <= to+0.5 {
			to = x1
			continue
		}
		flush()
		if only >= 0 {
			alone, from, to = only, x0, x1
			continue
		}
		y := float64(above)
		for part, share := range p.Shares[k] {
			if h := share * bandHeight; h >= 0.05 {
				box(part, x0, x1, y, h)
				y += h
			}
		}
	}
	flush()
	for part := range parts {
		if parts[part].Len() > 0 {
			fmt.Fprintf(b, `<path class="b%d" fill="%s" d="%s"/>`, part, colours[part], parts[part].String())
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// Swatch returns a small box in the colour of a part of a band, for a legend.
func Swatch(part int) string {
	return fmt.Sprintf(`<svg class="key" width="11" height="11" aria-hidden="true"><path class="b%d" fill="%s" d="M0 0h11v11h-11z"/></svg>`, part, colours[part])
}

// Sign returns a small line in a look, for a legend.
func Sign(look Look) string {
	d := "M0 6h20"
	switch look {
	case Area:
		d = "M0 2h20v9h-20z"
	case Rug:
		d = "M4 2v9M10 2v9M16 2v9"
	}
	var b strings.Builder
	b.WriteString(`<svg class="key" width="20" height="11" aria-hidden="true">`)
	path(&b, look, d)
	b.WriteString("</svg>")
	return b.String()
}

// begin begins a drawing.
func begin(title, desc string, height float64) *strings.Builder {
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %s" width="%d" role="img" font-family="system-ui,sans-serif" font-size="12"><title>%s</title><desc>%s</desc>`,
		width, number(above+height+below), width, html.EscapeString(title), html.EscapeString(desc))
	return b
}

// axis draws the time, and a grey strip where nothing ran.
func axis(b *strings.Builder, a *Axis, height float64) {
	for _, p := range a.pieces {
		if p.gap && p.x1 > p.x0+0.5 {
			fmt.Fprintf(b, `<path class="gap" fill="#8a949e" fill-opacity=".18" d="M%s %dH%sv%sH%sz"/>`, number(p.x0), above, number(p.x1), number(height), number(p.x0))
		}
	}
	for _, at := range a.Marks {
		x := number(a.X(at))
		fmt.Fprintf(b, `<path class="mark" stroke="#5c6670" stroke-dasharray="1 2" d="M%s %dV%s"/>`, x, above, number(above+height))
	}
	for _, t := range a.ticks() {
		rule(b, t.x, above, t.x, above+height)
		anchor := "middle"
		if t.atEdge() {
			anchor = "start"
		}
		label(b, t.x, above+height+14, anchor, t.text)
	}
}

func rule(b *strings.Builder, x0, y0, x1, y1 float64) {
	fmt.Fprintf(b, `<path class="grid" stroke="#dfe4e8" d="M%s %sL%s %s"/>`, number(x0), number(y0), number(x1), number(y1))
}

func label(b *strings.Builder, x, y float64, anchor, text string) {
	fmt.Fprintf(b, `<text class="tick" fill="#5c6670" x="%s" y="%s" text-anchor="%s">%s</text>`, number(x), number(y), anchor, html.EscapeString(text))
}

func path(b *strings.Builder, look Look, d string) {
	if d != "" {
		fmt.Fprintf(b, `<path class="%s" %s d="%s"/>`, looks[look].class, looks[look].attributes, d)
	}
}

// number shows a coordinate with one decimal, which is finer than a printer's dot.
func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}
