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
func (g *page) callsRow() string { return g.plain(event.CallsRow(g.Progress)) }
func (g *page) spentRow() string { return g.plain(event.SpentRow(g.Progress)) }

// header returns the first row: input, output, models and provider on the left, and the running time on the right. It
// leaves out parts that do not fit.
func (g *page) header() string {
	ran := g.runningTime()
	room := g.rowCells - g.Cells(ran) - 2
	in, out := g.Input, g.Output
	if in == "-" {
		in = "standard input"
	}
	if out == "-" {
		out = "standard output"
	}
	in, out = g.plain(in), g.plain(out)
	bases := g.filesText(path.Base(in), path.Base(out))
	models, provider := g.modelNames()
	for _, leftPart := range []string{
		g.filesText(in, out) + gap + models + provider,
		bases + gap + models + provider,
		bases + gap + models,
		bases,
	} {
		if leftPart = strings.TrimRight(leftPart, " "); g.Cells(leftPart) <= room {
			return leftPart + strings.Repeat(" ", g.rowCells-g.Cells(leftPart)-g.Cells(ran)) + ran
		}
	}
	leftPart := g.Clip(bases, room)
	return leftPart + strings.Repeat(" ", max(0, g.rowCells-g.Cells(leftPart)-g.Cells(ran))) + ran
}

func (g *page) filesText(in, out string) string {
	arrow := " → "
	if g.ASCII {
		arrow = " > "
	}
	return in + arrow + out
}

// modelNames names the model, or counts the models, and names the provider.
func (g *page) modelNames() (models, provider string) {
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

// runningTime shows the running time: in seconds and, from a minute on, in hours.
func (g *page) runningTime() string {
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

// doneShare returns the part of the input that has ended, 0..1; the input's length must be known.
func (g *page) doneShare() float64 {
	if *g.Total <= 0 {
		return 1
	}
	return min(1, max(0, float64(g.Done)/float64(*g.Total)))
}

// doneText says how far the run is. It rounds down, and so it is 100 % only at the end.
func (g *page) doneText() string {
	if g.Total == nil {
		return words.Number(g.Done) + " done"
	}
	return fmt.Sprintf("%d %%", int(g.doneShare()*100))
}

// Room of the bar, in cells.
const (
	barMargin = 35  // is left for the text around it
	mostBar   = 140 // is enough to see it move
)

// progress shows the bar and the counts.
func (g *page) progress() string {
	if g.Total == nil {
		return g.streamedText()
	}
	total := words.Number(*g.Total)
	tail := fmt.Sprintf(" %5s%s%*s of %s", g.doneText(), gap, max(7, len(total)), words.Number(g.Done), total)
	return g.Clip(g.bar(min(g.rowCells-barMargin, mostBar, g.rowCells-2-len(tail)))+tail, g.rowCells)
}

// streamedText says what is known of an input that can be read only once.
func (g *page) streamedText() string {
	return g.shorten(fmt.Sprintf("%s done, %s failed; how many come is not known", words.Number(g.Done), words.Number(int(g.Failed))), g.rowCells)
}

// Characters of the bar and of the speeds, from least to most. Those of ASCII are each one
// cell wide in every locale.
const (
	eighths = "▏▎▍▌▋▊▉"
	levels  = "▁▂▃▄▅▆▇█"
	asciis  = "_.-=+*%#"
)

// bar draws how far the run is, in n cells and two ends; "" if n is below 1.
func (g *page) bar(n int) string {
	if n < 1 {
		return ""
	}
	if !g.drawsBlocks() {
		full := int(math.Round(g.doneShare() * float64(n)))
		return "[" + strings.Repeat("#", full) + strings.Repeat(".", n-full) + "]"
	}
	parts := int(g.doneShare() * float64(n) * 8)
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
	speedsMargin = 43  // is left for the text next to them
	mostSpeeds   = 108 // are enough to see waves
)

// speedRow shows how fast items end: now, and in the last minutes.
func (g *page) speedRow() string {
	now := event.SpeedWord(g.Progress)
	switch {
	case len(g.speeds) == 0 && g.PerSecond <= 0:
		return ""
	case len(g.speeds) == 0:
		return now
	}
	room := SpeedsFor(g.rowCells + 1)
	return padded(now, 8) + " " + padded(g.sparkline(room), room) + gap + "the last " + durationText(g.span)
}

// sparkline draws the speeds, in at most that many cells.
func (g *page) sparkline(room int) string {
	signs, top := []rune(levels), g.topSpeed()
	if !g.drawsBlocks() {
		signs = []rune(asciis)
	}
	n := min(room, len(g.speeds))
	line := make([]rune, n)
	for i := range line {
		line[i] = signs[speedLevel(mean(g.speeds[i*len(g.speeds)/n:(i+1)*len(g.speeds)/n]), top)]
	}
	return string(line)
}

// topSpeed returns the speed that fills a cell: the allowed speed, or the greatest one. Where far more was allowed,
// the greatest speed is one level below, so that differences stay visible.
func (g *page) topSpeed() float64 {
	most := 0.0
	for _, x := range g.speeds {
		most = max(most, finite(x))
	}
	if g.Allowed == nil {
		return most
	}
	return min(max(most, finite(*g.Allowed)), most*8/7)
}

// speedLevel returns the index of the character for a speed.
func speedLevel(x, top float64) int {
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

// durationText shows a duration in the largest unit that is exact enough.
func durationText(d time.Duration) string {
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
	name        string
	gapBefore   int // before it
	cells       int
	leftAligned bool
	cell        func(g *page, l *event.Lane) string
}

// columns are the columns of the table.
var columns = []column{
	{"model", 0, 15, true, func(g *page, l *event.Lane) string { return strings.TrimPrefix(l.Name, g.Provider+"/") }},
	{"phase", 1, 9, true, func(_ *page, l *event.Lane) string { return l.Phase }},
	{"held by", 1, 16, true, func(_ *page, l *event.Lane) string { return l.BoundShort }},
	{"items/s", 1, 7, false, func(_ *page, l *event.Lane) string { return fmt.Sprintf("%.1f", l.DonePerS) }},
	{"of limit", 3, 8, false, func(_ *page, l *event.Lane) string { return usedShare(l) }},
	{"in flight", 3, 9, false, func(_ *page, l *event.Lane) string { return words.Number(l.InFlight) }},
	{"p50  ", 2, 6, false, func(_ *page, l *event.Lane) string { return latency(l.P50MS) }},
	{"p95  ", 2, 6, false, func(_ *page, l *event.Lane) string { return latency(&l.P95MS) }},
	{"refused", 2, 7, false, func(_ *page, l *event.Lane) string { return words.Number(l.Throttled) }},
	{"broke", 2, 6, false, func(_ *page, l *event.Lane) string { return words.Number(l.Broke) }},
	{"failed", 3, 6, false, func(_ *page, l *event.Lane) string { return words.Number(l.Failed) }},
	{"left", 3, 7, false, func(_ *page, l *event.Lane) string { return remainingItems(l) }},
}

// optionalColumns lists the columns that a narrow table leaves out: the last one first.
var optionalColumns = []string{"p50  ", "refused", "broke"}

// laneTable returns an empty row, and then a row for each of the first lanes.
func (g *page) laneTable() []row {
	shown, indent := g.fittingColumns()
	rows := []row{{}, {text: indent + g.tableLine(shown, func(c column) string { return c.name }), tone: faint}}
	for i := range g.Lanes[:min(len(g.Lanes), mostLanes)] {
		l := &g.Lanes[i]
		rows = append(rows, row{text: indent + g.tableLine(shown, func(c column) string { return c.cell(g, l) })})
	}
	return rows
}

// fittingColumns returns the columns that fit, and the indent before them. It leaves out optional columns until the
// rest fits.
func (g *page) fittingColumns() (shown []column, indent string) {
	shown = g.laneColumns()
	if totalCells(shown)+nameCells <= g.rowCells {
		return shown, strings.Repeat(" ", nameCells)
	}
	for i := len(optionalColumns); i > 0 && totalCells(shown) > g.rowCells; i-- {
		shown = slices.DeleteFunc(slices.Clone(shown), func(c column) bool { return c.name == optionalColumns[i-1] })
	}
	return shown, ""
}

// laneColumns returns the columns of the table. Lanes of a file show their cost in place of the remaining items, as
// no lane owns those.
func (g *page) laneColumns() []column {
	if !slices.ContainsFunc(g.Lanes, func(l event.Lane) bool { return l.USD != nil }) {
		return columns
	}
	return append(slices.Clone(columns[:len(columns)-1]), column{"cost", 3, 7, false, func(_ *page, l *event.Lane) string { return cost(l) }})
}

func totalCells(list []column) (n int) {
	for _, c := range list {
		n += c.gapBefore + c.cells
	}
	return n
}

// tableLine formats one line of the table, with the text that of returns for each column.
func (g *page) tableLine(shown []column, of func(column) string) string {
	var b strings.Builder
	for _, c := range shown {
		text := g.Clip(of(c), c.cells)
		rest := strings.Repeat(" ", c.cells-g.Cells(text))
		b.WriteString(strings.Repeat(" ", c.gapBefore))
		if c.leftAligned {
			b.WriteString(text + rest)
		} else {
			b.WriteString(rest + text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// usedShare returns how much of its narrowest limit a lane uses, in percent.
func usedShare(l *event.Lane) string {
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

func remainingItems(l *event.Lane) string {
	if l.Left == nil {
		return "-"
	}
	return words.Number(*l.Left)
}
