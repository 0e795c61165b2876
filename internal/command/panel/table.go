package panel

import (
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
)

// mostLanes is the most lanes that the table has.
const mostLanes = 8

// column is one column of the table of lanes.
type column struct {
	name  string
	space int // before it
	cells int
	left  bool
	of    func(g *page, l *event.Lane) string
}

// columns are the columns of the table.
var columns = []column{
	{"model", 0, 15, true, func(g *page, l *event.Lane) string { return strings.TrimPrefix(l.Name, g.Provider+"/") }},
	{"phase", 1, 9, true, func(_ *page, l *event.Lane) string { return l.Phase }},
	{"held by", 1, 16, true, func(_ *page, l *event.Lane) string { return l.HeldShort }},
	{"items/s", 1, 7, false, func(_ *page, l *event.Lane) string { return fmt.Sprintf("%.1f", l.DonePerS) }},
	{"of limit", 3, 8, false, func(_ *page, l *event.Lane) string { return used(l) }},
	{"in flight", 3, 9, false, func(_ *page, l *event.Lane) string { return number(l.InFlight) }},
	{"p50  ", 2, 6, false, func(_ *page, l *event.Lane) string { return latency(l.P50MS) }},
	{"p95  ", 2, 6, false, func(_ *page, l *event.Lane) string { return latency(&l.P95MS) }},
	{"refused", 2, 7, false, func(_ *page, l *event.Lane) string { return number(l.Throttled) }},
	{"broke", 2, 6, false, func(_ *page, l *event.Lane) string { return number(l.Broke) }},
	{"failed", 3, 6, false, func(_ *page, l *event.Lane) string { return number(l.Failed) }},
	{"left", 3, 7, false, func(_ *page, l *event.Lane) string { return left(l) }},
}

// spare lists the columns that a narrow table leaves out: the last one first.
var spare = []string{"p50  ", "refused", "broke"}

// table returns an empty row, and then a row for each of the first lanes.
func (g *page) table() []row {
	shown, indent := g.columns()
	rows := []row{{}, {text: indent + g.line(shown, func(c column) string { return c.name }), tone: faint}}
	for i := range g.Lanes[:min(len(g.Lanes), mostLanes)] {
		l := &g.Lanes[i]
		rows = append(rows, row{text: indent + g.line(shown, func(c column) string { return c.of(g, l) })})
	}
	return rows
}

// columns returns the columns that fit, and the indent before them.
func (g *page) columns() (shown []column, indent string) {
	shown = columns
	if sumOf(shown)+nameCells <= g.room {
		return shown, strings.Repeat(" ", nameCells)
	}
	for i := len(spare); i > 0 && sumOf(shown) > g.room; i-- {
		shown = without(shown, spare[i-1])
	}
	return shown, ""
}

func sumOf(list []column) (n int) {
	for _, c := range list {
		n += c.space + c.cells
	}
	return n
}

func without(list []column, name string) (rest []column) {
	for _, c := range list {
		if c.name != name {
			rest = append(rest, c)
		}
	}
	return rest
}

// line is one line of the table.
func (g *page) line(shown []column, of func(column) string) string {
	var b strings.Builder
	for _, c := range shown {
		text := g.Clip(of(c), c.cells)
		rest := strings.Repeat(" ", c.cells-g.Cells(text))
		b.WriteString(strings.Repeat(" ", c.space))
		if c.left {
			b.WriteString(text + rest)
		} else {
			b.WriteString(rest + text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// used returns the share of its narrowest limit that a lane draws.
func used(l *event.Lane) string {
	most := -1.0
	for _, limit := range l.Limits {
		if limit.Used != nil {
			most = max(most, *limit.Used)
		}
	}
	if most < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*most)
}

func latency(ms *int64) string {
	if ms == nil || *ms <= 0 {
		return "-"
	}
	return words.Wait(time.Duration(*ms) * time.Millisecond)
}

func left(l *event.Lane) string {
	if l.Left == nil {
		return "-"
	}
	return number(*l.Left)
}
