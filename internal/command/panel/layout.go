package panel

import (
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
)

// A Style is what a terminal can show. Its zero value has no colour, and all signs.
type Style struct {
	Color bool // may repeat what words say
	ASCII bool // nothing else can be shown
	Wide  bool // signs whose width is ambiguous take two cells, as in Chinese, Japanese and Korean locales
}

// From these sizes on there is room for more.
const (
	tableColumns, tableRows = 120, 30
	panelColumns, panelRows = 60, 14
	smallColumns, smallRows = 40, 6
)

// MostRows is how many rows a panel has at most, a table of lanes aside.
const MostRows = 10

// Layout is what is shown of a run on a terminal of that size: rows without their line feeds,
// each at least one cell narrower than the terminal. Speeds are items a second in equal parts
// of the last span, oldest first; nil: they are not known. Without any room there are no rows.
func Layout(p *event.Progress, speeds []float64, span time.Duration, width, height int, style Style) []string {
	if width < 2 || height < 1 {
		return nil
	}
	g := page{Progress: p, speeds: speeds, span: span, room: width - 1, Style: style}
	var rows []row
	switch {
	case width < smallColumns || height < smallRows:
		rows = []row{g.oneRow()}
	case width < panelColumns || height < panelRows:
		rows = g.small()
	case width >= tableColumns && height >= tableRows && len(p.Lanes) > 1:
		rows = append(g.panel(true), g.table()...)
	default:
		rows = g.panel(false)
	}
	shown := make([]string, len(rows))
	for i, r := range rows {
		shown[i] = g.paint(r)
	}
	return shown
}

// SpeedsFor is how many speeds a Layout of that width has room for: more of them are merged.
func SpeedsFor(width int) int {
	beside := besideSpeeds
	if width < panelColumns {
		beside = besideSmallSpeeds
	}
	return min(max(1, width-1-beside), mostSpeeds)
}

// page is one layout.
type page struct {
	*event.Progress
	speeds []float64
	span   time.Duration
	room   int // cells of a row
	Style
}

// row is one row before it is coloured: a name, and what it says.
type row struct {
	name, text string
	tone       tone
}

// nameCells is how wide the names of rows are, with the space behind them.
const nameCells = 9

// panel is the whole of it; wide leaves out what the table of lanes says.
func (g *page) panel(wide bool) []row {
	rows := []row{{text: g.header()}, {text: g.progress()}}
	add := func(name, text string, t tone) {
		if text != "" {
			rows = append(rows, row{padded(name, nameCells), g.shorten(text, g.room-nameCells), t})
		}
	}
	held, more := g.held(wide)
	add(g.heldName(), held, g.gravity())
	add("", more, calm)
	add("Ends", g.ends(wide), calm)
	if !g.isEnding() {
		add("Speed", g.speed(), calm)
	}
	if !wide && g.State != stopped {
		add("Calls", g.calls(), calm)
	}
	add("Spent", g.spent(), calm)
	add("Failed", g.failed(), g.failedTone())
	if !g.isEnding() && g.Latest != "" {
		rows = append(rows, row{text: g.shorten(g.Latest, g.room), tone: faint})
	}
	return rows
}

// isEnding is true from when nothing more is begun: speed, and what happened before, no longer
// matter.
func (g *page) isEnding() bool {
	return g.State == draining || g.State == stopped || g.State == over
}

// States of which it hangs what is shown.
const (
	paused   = "paused"
	draining = "draining"
	stopped  = "stopped"
	over     = "over"
)

func (g *page) heldName() string {
	if g.State == stopped {
		return "Stopped"
	}
	return "Held by"
}

// held is the longest sentence of what holds the run back that has room, and what more there
// is to say of it.
func (g *page) held(wide bool) (text, more string) {
	switch {
	case wide && g.HeldWide != "" && g.fits(g.HeldWide):
		return g.HeldWide, ""
	case g.HeldBy == "" || !g.fits(g.HeldBy) && g.HeldShort != "":
		return g.HeldShort, g.HeldMore
	}
	return g.HeldBy, g.HeldMore
}

func (g *page) ends(wide bool) string {
	if wide && g.EndsWide != "" && g.fits(g.EndsWide) {
		return g.EndsWide
	}
	return g.EndsText
}

// fits is true for a text that has room behind a row's name.
func (g *page) fits(text string) bool { return g.Cells(g.plain(text)) <= g.room-nameCells }

func (g *page) failedTone() tone {
	if g.Failed > 0 {
		return bad
	}
	return calm
}

// small is the four rows for where there is little room.
func (g *page) small() []row {
	return []row{
		{text: g.smallProgress()},
		{g.heldName() + " ", g.shorten(g.HeldShort, g.room-len(g.heldName())-1), g.gravity()},
		{"Ends ", g.smallEnds(g.room - len("Ends ")), calm},
		{text: g.smallFigures()},
	}
}

// smallEnds is when it ends, in the longest words that have room.
func (g *page) smallEnds(room int) string {
	if g.EndsShort != "" && g.Cells(g.plain(g.EndsText)) > room {
		return g.shorten(g.EndsShort, room)
	}
	return g.shorten(g.EndsText, room)
}

// smallFigures is how fast it goes, what failed and what it cost; of a run that ends, what is
// still under way.
func (g *page) smallFigures() string {
	if g.isEnding() {
		return g.shorten(g.calls(), g.room)
	}
	beside := g.counts()
	speed := event.SpeedWord(g.Progress)
	if room := min(g.room-besideSmallSpeeds, g.room-len(speed)-1-g.Cells(beside)); len(g.speeds) > 0 && room > 0 {
		speed += " " + g.sparkline(room)
	}
	return g.shorten(speed+beside, g.room)
}

// besideSmallSpeeds is left for the words beside the speeds of the four rows.
const besideSmallSpeeds = 27

// counts are what failed and what it cost, each behind two spaces.
func (g *page) counts() (text string) {
	if g.Failed > 0 {
		text += "  " + number(int(g.Failed)) + " failed"
	}
	if g.Spent.USD != nil {
		money, _, _ := strings.Cut(g.spent(), ", ")
		money, _, _ = strings.Cut(money, gap)
		text += "  " + money
	}
	return text
}

// oneRow is how far it is, and what holds it back; then more, while there is room.
func (g *page) oneRow() row {
	line := g.share()
	if held := g.plain(g.HeldShort); held != "" {
		line += " " + g.brief(held, g.room-g.Cells(line)-1)
	}
	line = strings.TrimRight(line, " ")
	end := ""
	if g.Ends != nil {
		end = g.plain(g.EndsText)
	}
	for _, more := range []string{event.SpeedWord(g.Progress), end, strings.TrimSpace(g.counts())} {
		if more != "" && g.Cells(line)+2+g.Cells(more) <= g.room {
			line += "  " + more
		}
	}
	return row{text: g.Clip(line, g.room), tone: g.gravity()}
}
