package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
)

// liveEvery is the period of the live line: as fast as eyes follow figures.
const liveEvery = 200 * time.Millisecond

// DefaultWidth is the assumed width of a terminal that does not report its columns.
const DefaultWidth = 80

// eraseLine moves to the first column and clears the line.
const eraseLine = "\r\x1b[K"

// live shows a run on a terminal: lines for events, and below them one line that is drawn
// again and again. That line never wraps, however narrow the terminal: parts that do not fit
// are left out.
type live struct {
	plain
	screen io.Writer // only this type steers it
	width  func() int
	style  panel.Style
	line   string // the line on the terminal now
}

// Live shows a run on a terminal that is width() columns wide and shows text in that style.
// Events stand in lines, whose texts steer nothing, and the progress in one line that is
// drawn again and again.
func Live(out io.Writer, width func() int, style panel.Style) Manner {
	return Manner{newLive(out, width, style), liveEvery}
}

func newLive(out io.Writer, width func() int, style panel.Style) *live {
	return &live{plain: plain{out: printable.Writer{Out: out}}, screen: out, width: width, style: style}
}

func (l *live) notice(at time.Time, code event.Code, text string) {
	l.above(func() { l.plain.notice(at, code, text) })
}

func (l *live) log(line []byte) { l.above(func() { l.plain.log(line) }) }

func (l *live) transition(t batch.Transition) { l.above(func() { l.plain.transition(t) }) }

func (l *live) longWait(w batch.LongWait) { l.above(func() { l.plain.longWait(w) }) }

func (l *live) all(p *event.Progress) { l.above(func() { l.plain.all(p) }) }

func (l *live) status(p *event.Progress) {
	l.line = fit(append(figures(p), words.Wait(elapsed(p))), l.width()-1, l.style)
	fmt.Fprint(l.screen, eraseLine+l.line)
}

func (l *live) summary(s *Report) {
	if l.line != "" {
		fmt.Fprint(l.screen, eraseLine)
	}
	l.line = ""
	l.plain.summary(s)
}

// above writes lines in place of the live line, and draws that again below them.
func (l *live) above(write func()) {
	if l.line == "" {
		write()
		return
	}
	fmt.Fprint(l.screen, eraseLine)
	write()
	fmt.Fprint(l.screen, l.line)
}

// fit joins as many words as fit in width cells, in their order, and clips the first if even
// that does not fit. The words steer nothing, no matter where they come from.
func fit(list []string, width int, style panel.Style) string {
	line := ""
	for i, w := range list {
		w = printable.Line(w)
		next := w
		if i > 0 {
			next = line + "  " + w
		}
		if style.Cells(next) > width {
			break
		}
		line = next
	}
	if line == "" && len(list) > 0 && width > 0 {
		return style.Clip(list[0], width)
	}
	return strings.TrimRight(line, " ")
}
