package panel

import (
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
)

// A Style describes what a terminal can show. Its zero value has no colour, and all
// characters.
type Style struct {
	Color bool // may repeat what words say
	ASCII bool // no other characters can be shown
	Wide  bool // characters of ambiguous width take two cells, as in Chinese, Japanese and Korean locales
}

// The sizes from which on there is room for more.
const (
	tableColumns, tableRows = 120, 30
	panelColumns, panelRows = 60, 14
	smallColumns, smallRows = 40, 6
)

// MostRows is the most rows of a panel, without a table of lanes.
const MostRows = 10

// Layout returns the rows that show a run on a terminal of that size, without their line
// feeds. Each is at least one cell narrower than the terminal. Speeds are items a second in
// equal parts of the last span, oldest first; nil: they are not known. Without any room there
// are no rows.
func Layout(p *event.Progress, speeds []float64, span time.Duration, width, height int, style Style) []string {
	if width < 2 || height < 1 {
		return nil
	}
	g := page{Progress: p, speeds: speeds, span: span, rowCells: width - 1, Style: style}
	var rows []row
	switch {
	case width < smallColumns || height < smallRows:
		rows = []row{g.oneRow()}
	case width < panelColumns || height < panelRows:
		rows = g.fourRows()
	case width >= tableColumns && height >= tableRows && len(p.Lanes) > 1:
		rows = append(g.panelRows(true), g.laneTable()...)
	default:
		rows = g.panelRows(false)
	}
	shown := make([]string, len(rows))
	for i, r := range rows {
		shown[i] = g.paint(r)
	}
	return shown
}

// SpeedsFor returns the number of speeds that fit in a Layout of that width; it merges
// further ones.
func SpeedsFor(width int) int {
	beside := speedsMargin
	if width < panelColumns {
		beside = smallSpeedsMargin
	}
	return min(max(1, width-1-beside), mostSpeeds)
}

// page is one layout.
type page struct {
	*event.Progress
	speeds   []float64
	span     time.Duration
	rowCells int // cells of a row
	Style
}

// row is one row before it is coloured: a name and its text.
type row struct {
	name, text string
	tone       tone
}

// nameCells is the width of the rows' names, with the space after them.
const nameCells = 9

// panelRows returns the rows of the whole panel. wide leaves out what the table of lanes shows.
func (g *page) panelRows(wide bool) []row {
	rows := []row{{text: g.header()}, {text: g.progress()}}
	add := func(name, text string, t tone) {
		if text != "" {
			rows = append(rows, row{padded(name, nameCells), g.shorten(text, g.rowCells-nameCells), t})
		}
	}
	bound, more := g.boundText(wide)
	add(g.boundName(), bound, g.boundTone())
	add("", more, calm)
	ends := g.EndsText
	if wide && g.EndsWide != "" && g.fits(g.EndsWide) {
		ends = g.EndsWide
	}
	add("Ends", ends, calm)
	if !g.isEnding() {
		add("Speed", g.speedRow(), calm)
	}
	if !wide && g.State != stopped {
		add("Calls", g.callsRow(), calm)
	}
	add("Spent", g.spentRow(), calm)
	failed := calm
	if g.Failed > 0 {
		failed = bad
	}
	add("Failed", g.plain(event.FailedRow(g.Progress)), failed)
	if !g.isEnding() && g.Latest != "" {
		rows = append(rows, row{text: g.shorten(g.Latest, g.rowCells), tone: faint})
	}
	return rows
}

// isEnding is true once the run begins nothing more: speed, and what happened before, no
// longer matter.
func (g *page) isEnding() bool {
	return g.State == draining || g.State == stopped || g.State == over
}

// The states that change what is shown.
const (
	paused   = "paused"
	draining = "draining"
	stopped  = "stopped"
	over     = "over"
)

// boundName returns the name of the row about what holds the run back.
func (g *page) boundName() string {
	if g.State == stopped {
		return "Stopped"
	}
	return "Held by"
}

// boundText returns the longest text that fits about what holds the run back, and further details.
func (g *page) boundText(wide bool) (text, more string) {
	switch {
	case wide && g.BoundWide != "" && g.fits(g.BoundWide):
		return g.BoundWide, ""
	case g.BoundText == "" || !g.fits(g.BoundText) && g.BoundShort != "":
		return g.BoundShort, g.BoundMore
	}
	return g.BoundText, g.BoundMore
}

// fits reports whether a text fits after a row's name.
func (g *page) fits(text string) bool { return g.Cells(g.plain(text)) <= g.rowCells-nameCells }

// fourRows returns the rows for a small terminal. The last shows speed, failures and cost, or what is in flight when
// the run is ending.
func (g *page) fourRows() []row {
	progress := g.streamedText()
	if g.Total != nil {
		tail := fmt.Sprintf(" %s  %s/%s", g.doneText(), words.Number(g.Done), thousands(*g.Total))
		progress = g.Clip(g.bar(g.rowCells-2-len(tail))+tail, g.rowCells)
	}
	name, ends := g.boundName()+" ", g.EndsText
	if g.EndsShort != "" && g.Cells(g.plain(ends)) > g.rowCells-len("Ends ") {
		ends = g.EndsShort
	}
	figures := g.callsRow()
	if !g.isEnding() {
		beside, speed := g.failedAndSpent(), event.SpeedWord(g.Progress)
		if room := min(g.rowCells-smallSpeedsMargin, g.rowCells-len(speed)-1-g.Cells(beside)); len(g.speeds) > 0 && room > 0 {
			speed += " " + g.sparkline(room)
		}
		figures = speed + beside
	}
	return []row{
		{text: progress},
		{name, g.shorten(g.BoundShort, g.rowCells-len(name)), g.boundTone()},
		{"Ends ", g.shorten(ends, g.rowCells-len("Ends ")), calm},
		{text: g.shorten(figures, g.rowCells)},
	}
}

// smallSpeedsMargin is the room for the words next to the speeds of the four rows.
const smallSpeedsMargin = 27

// failedAndSpent returns the numbers of failures and the cost, each after two spaces.
func (g *page) failedAndSpent() (text string) {
	if g.Failed > 0 {
		text += "  " + words.Number(int(g.Failed)) + " failed"
	}
	if g.Spent.USD != nil {
		money, _, _ := strings.Cut(g.spentRow(), ", ")
		money, _, _ = strings.Cut(money, gap)
		text += "  " + money
	}
	return text
}

// oneRow returns one row: how far the run is, what holds it back, and more where there is room.
func (g *page) oneRow() row {
	line := g.doneText()
	if bound := g.plain(g.BoundShort); bound != "" {
		line += " " + g.shortenToName(bound, g.rowCells-g.Cells(line)-1)
	}
	line = strings.TrimRight(line, " ")
	end := ""
	if g.Ends != nil {
		end = g.plain(g.EndsText)
	}
	for _, more := range []string{event.SpeedWord(g.Progress), end, strings.TrimSpace(g.failedAndSpent())} {
		if more != "" && g.Cells(line)+2+g.Cells(more) <= g.rowCells {
			line += "  " + more
		}
	}
	return row{text: g.Clip(line, g.rowCells), tone: g.boundTone()}
}
