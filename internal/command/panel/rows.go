package panel

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
)

// gap separates the parts of a row.
const gap = "   "

// The rows that are the event's own words, in characters that the terminal has.
func (g *page) calls() string { return g.plain(event.CallsRow(g.Progress)) }
func (g *page) spent() string { return g.plain(event.SpentRow(g.Progress)) }

// header names the input, the output and the provider, and on the right the running time.
func (g *page) header() string {
	ran := g.running()
	room := g.room - g.Cells(ran) - 2
	in, out := g.Input, g.Output
	if in == "-" {
		in = "standard input"
	}
	if out == "-" {
		out = "standard output"
	}
	in, out = g.plain(in), g.plain(out)
	bases := g.files(path.Base(in), path.Base(out))
	models, provider := g.models()
	for _, left := range []string{
		g.files(in, out) + gap + models + provider,
		bases + gap + models + provider,
		bases + gap + models,
		bases,
	} {
		if left = strings.TrimRight(left, " "); g.Cells(left) <= room {
			return left + strings.Repeat(" ", g.room-g.Cells(left)-g.Cells(ran)) + ran
		}
	}
	left := g.Clip(bases, room)
	return left + strings.Repeat(" ", max(0, g.room-g.Cells(left)-g.Cells(ran))) + ran
}

func (g *page) files(in, out string) string {
	arrow := " → "
	if g.ASCII {
		arrow = " > "
	}
	return in + arrow + out
}

// models names the model, or counts the models, and names the provider.
func (g *page) models() (models, provider string) {
	provider = g.plain(g.Provider)
	switch {
	case g.OfModels > 1:
		return words.Number(g.OfModels) + " " + g.LanesWord(), " on " + provider
	case len(g.Models) == 0:
		return "", provider
	}
	if provider != "" {
		provider = ", " + provider
	}
	return g.plain(g.Models[0]), provider
}

// running shows the running time: in seconds and, from a minute on, in hours.
func (g *page) running() string {
	word := "running "
	switch g.State {
	case over:
		word = "ran "
	case paused:
		word = "paused "
	}
	s := int(min(max(0, finite(g.ElapsedS)), 1e9)) // no run lasts as many seconds
	if s < 60 {
		return fmt.Sprintf("%s0:%02d", word, s)
	}
	return fmt.Sprintf("%s%d:%02d:%02d", word, s/3600, s/60%60, s%60)
}

// done returns the part of the input that has ended, 0..1; the input's length must be known.
func (g *page) done() float64 {
	if *g.Total <= 0 {
		return 1
	}
	return min(1, max(0, float64(g.Done)/float64(*g.Total)))
}

// share says how far the run is. It rounds down, and so it is 100 % only at the end.
func (g *page) share() string {
	if g.Total == nil {
		return words.Number(g.Done) + " done"
	}
	return fmt.Sprintf("%d %%", int(g.done()*100))
}

// Room of the bar, in cells.
const (
	besideBar = 35  // is left for the text around it
	mostBar   = 140 // is enough to see it move
)

// progress shows the bar and the counts.
func (g *page) progress() string {
	if g.Total == nil {
		return g.streamed()
	}
	total := words.Number(*g.Total)
	tail := fmt.Sprintf(" %5s%s%*s of %s", g.share(), gap, max(7, len(total)), words.Number(g.Done), total)
	return g.Clip(g.bar(min(g.room-besideBar, mostBar, g.room-2-len(tail)))+tail, g.room)
}

// streamed says what is known of an input that can be read only once.
func (g *page) streamed() string {
	return g.shorten(fmt.Sprintf("%s done, %s failed; how many come is not known", words.Number(g.Done), words.Number(int(g.Failed))), g.room)
}

// Characters of the bar and of the speeds, from least to most. Those of ASCII are each one
// cell wide in every locale.
const (
	eighths = "▏▎▍▌▋▊▉"
	levels  = "▁▂▃▄▅▆▇█"
	asciis  = "_.-=+*%#"
)

// bar shows how far the run is, n cells and its two ends wide; nothing if there is no room
// for it.
func (g *page) bar(n int) string {
	if n < 1 {
		return ""
	}
	if !g.drawsBlocks() {
		full := int(math.Round(g.done() * float64(n)))
		return "[" + strings.Repeat("#", full) + strings.Repeat(".", n-full) + "]"
	}
	parts := int(g.done() * float64(n) * 8)
	full, rest := parts/8, parts%8
	line := strings.Repeat("█", full)
	if rest > 0 {
		line += string([]rune(eighths)[rest-1])
		full++
	}
	return "▕" + line + strings.Repeat("·", n-full) + "▏"
}

// drawsBlocks reports whether the terminal can show blocks, one cell wide.
func (g *page) drawsBlocks() bool { return !g.ASCII && !g.Wide }

// Room of the speeds, in cells.
const (
	besideSpeeds = 43  // is left for the text next to them
	mostSpeeds   = 108 // are enough to see waves
)

// speed shows how fast items end: now, and in the last minutes.
func (g *page) speed() string {
	now := event.SpeedWord(g.Progress)
	switch {
	case len(g.speeds) == 0 && g.PerSecond <= 0:
		return ""
	case len(g.speeds) == 0:
		return now
	}
	room := SpeedsFor(g.room + 1)
	return padded(now, 8) + " " + padded(g.sparkline(room), room) + gap + "the last " + lasted(g.span)
}

// sparkline draws the speeds, in at most room cells.
func (g *page) sparkline(room int) string {
	signs, top := []rune(levels), g.top()
	if !g.drawsBlocks() {
		signs = []rune(asciis)
	}
	n := min(room, len(g.speeds))
	line := make([]rune, n)
	for i := range line {
		line[i] = signs[level(mean(g.speeds[i*len(g.speeds)/n:(i+1)*len(g.speeds)/n]), top)]
	}
	return string(line)
}

// top returns the speed that fills a cell: the allowed speed, or the greatest one. Where far
// more was allowed, the greatest speed is one level below the top, as the row shows how speeds
// differ.
func (g *page) top() float64 {
	most := 0.0
	for _, x := range g.speeds {
		most = max(most, finite(x))
	}
	if g.Allowed == nil {
		return most
	}
	return min(max(most, finite(*g.Allowed)), most*8/7)
}

// level returns the index of the character for a speed.
func level(x, top float64) int {
	if top <= 0 {
		return 0
	}
	return int(min(1, max(0, x/top)) * 7)
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += finite(x)
	}
	return sum / float64(len(list))
}

// finite returns 0 for a speed that is no number.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// lasted shows a duration in the largest unit that is exact enough.
func lasted(d time.Duration) string {
	switch {
	case d < 99500*time.Millisecond:
		return fmt.Sprintf("%.0f s", max(0, d.Seconds()))
	case d < 570*time.Second: // to the tenth, as half a minute in three matters
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Minutes()), ".0") + " min"
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

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
	{"held by", 1, 16, true, func(_ *page, l *event.Lane) string { return l.BoundShort }},
	{"items/s", 1, 7, false, func(_ *page, l *event.Lane) string { return fmt.Sprintf("%.1f", l.DonePerS) }},
	{"of limit", 3, 8, false, func(_ *page, l *event.Lane) string { return used(l) }},
	{"in flight", 3, 9, false, func(_ *page, l *event.Lane) string { return words.Number(l.InFlight) }},
	{"p50  ", 2, 6, false, func(_ *page, l *event.Lane) string { return latency(l.P50MS) }},
	{"p95  ", 2, 6, false, func(_ *page, l *event.Lane) string { return latency(&l.P95MS) }},
	{"refused", 2, 7, false, func(_ *page, l *event.Lane) string { return words.Number(l.Throttled) }},
	{"broke", 2, 6, false, func(_ *page, l *event.Lane) string { return words.Number(l.Broke) }},
	{"failed", 3, 6, false, func(_ *page, l *event.Lane) string { return words.Number(l.Failed) }},
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
	shown = g.columnsOf()
	if sumOf(shown)+nameCells <= g.room {
		return shown, strings.Repeat(" ", nameCells)
	}
	for i := len(spare); i > 0 && sumOf(shown) > g.room; i-- {
		shown = slices.DeleteFunc(slices.Clone(shown), func(c column) bool { return c.name == spare[i-1] })
	}
	return shown, ""
}

// columnsOf returns the columns of the run's lanes. Each lane of a file has a cost, and nobody
// knows which lane will take the remaining items.
func (g *page) columnsOf() []column {
	if !slices.ContainsFunc(g.Lanes, func(l event.Lane) bool { return l.USD != nil }) {
		return columns
	}
	return append(slices.Clone(columns[:len(columns)-1]), column{"cost", 3, 7, false, func(_ *page, l *event.Lane) string { return cost(l) }})
}

func sumOf(list []column) (n int) {
	for _, c := range list {
		n += c.space + c.cells
	}
	return n
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

func cost(l *event.Lane) string {
	if l.USD == nil {
		return "-"
	}
	return words.Money(*l.USD)
}

func left(l *event.Lane) string {
	if l.Left == nil {
		return "-"
	}
	return words.Number(*l.Left)
}
