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

// Manner is a way to show a run: Panel, Live, Plain, JSON or Silent makes one.
type Manner struct {
	display display
	every   time.Duration
}

// Every returns the period of the snapshots that it shows.
func (m Manner) Every() time.Duration { return m.every }

// display shows what happens in a run, in one of several manners. It belongs to one
// goroutine.
type display interface {
	begin(s event.Start, began time.Time)              // what runs, and since when
	notice(at time.Time, code event.Code, text string) // something the user should know
	log(line []byte)                                   // a line of the log, as it is
	transition(t *batch.Transition)                    // a lane changed its phase
	longWait(w *batch.LongWait)                        // a lane or an item waits for long
	changed(c *event.Changed)                          // a person changed something of the run
	status(p *event.Progress)                          // how the run stands, once a period
	rows(func(width, height int) []string, string)     // how a server stands: rows, or a line
	all(p *event.Progress)                             // the same in lines, once, when a user asks for it
	summary(s *Report)                                 // how it ended; nil: there is no report
}

// silentEvery is the period of snapshots that nobody sees.
const silentEvery = time.Hour

// Silent shows only what a user must know.
func Silent(out io.Writer) Manner { return Manner{silent{out}, silentEvery} }

type silent struct{ out io.Writer }

func (s silent) notice(_ time.Time, _ event.Code, text string) {
	fmt.Fprintf(s.out, "headrace: %s\n", printable.Line(text))
}
func (s silent) log(line []byte)                               { _, _ = s.out.Write(line) } // a log that cannot be written is lost
func (s silent) begin(event.Start, time.Time)                  {}
func (s silent) transition(*batch.Transition)                  {}
func (s silent) longWait(*batch.LongWait)                      {} // the log has it
func (s silent) changed(*event.Changed)                        {} // likewise
func (s silent) status(*event.Progress)                        {}
func (s silent) rows(func(width, height int) []string, string) {}
func (s silent) all(p *event.Progress)                         { (&plain{out: s.out}).all(p) }
func (s silent) summary(*Report)                               {}

// plainEvery is the period of plain lines. It is short enough to see that the run goes on, and
// long enough that an hour's run leaves a readable log.
const plainEvery = 5 * time.Second

// Plain shows a run in lines: for logs and pipes.
func Plain(out io.Writer) Manner { return Manner{&plain{out: out}, plainEvery} }

// plain shows a run in lines, for logs and pipes.
type plain struct {
	out   io.Writer
	began time.Time
}

// say writes one line that steers nothing, no matter where its texts come from.
func (p *plain) say(line string) { fmt.Fprintln(p.out, printable.Line(line)) }

func (p *plain) begin(_ event.Start, began time.Time)          { p.began = began }
func (p *plain) notice(_ time.Time, _ event.Code, text string) { p.say("headrace: " + text) }
func (p *plain) log(line []byte)                               { _, _ = p.out.Write(line) } // a log that cannot be written is lost

func (p *plain) transition(t *batch.Transition) {
	p.say(event.ClockTime(t.At.Sub(p.began)) + "  " + event.Story(t))
}

func (p *plain) longWait(w *batch.LongWait) {
	p.say(event.ClockTime(w.At.Sub(p.began)) + "  warning: " + event.WaitStory(w))
}

func (p *plain) changed(c *event.Changed) { p.say("headrace: changed: " + c.Say()) }

func (p *plain) status(e *event.Progress) {
	p.say(event.Line(e))
}

func (p *plain) rows(_ func(width, height int) []string, line string) { p.say(line) }

func (p *plain) all(e *event.Progress) {
	for _, line := range event.Lines(e) {
		p.say(line)
	}
}

func (p *plain) summary(s *Report) {
	if s != nil {
		fmt.Fprint(p.out, s.text())
	}
}

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

func (l *live) transition(t *batch.Transition) { l.above(func() { l.plain.transition(t) }) }

func (l *live) longWait(w *batch.LongWait) { l.above(func() { l.plain.longWait(w) }) }

func (l *live) changed(c *event.Changed) { l.above(func() { l.plain.changed(c) }) }

func (l *live) all(p *event.Progress) { l.above(func() { l.plain.all(p) }) }

func (l *live) status(p *event.Progress) {
	l.line = fitWords(append(event.Figures(p), words.Wait(time.Duration(p.ElapsedS*float64(time.Second)))), l.width()-1, l.style)
	fmt.Fprint(l.screen, eraseLine+l.line)
}

func (l *live) summary(s *Report) {
	if l.line != "" {
		fmt.Fprint(l.screen, eraseLine)
	}
	l.line = ""
	l.plain.summary(s)
}

// above removes the live line, has write write lines in its place, and draws it again below them.
func (l *live) above(write func()) {
	if l.line == "" {
		write()
		return
	}
	fmt.Fprint(l.screen, eraseLine)
	write()
	fmt.Fprint(l.screen, l.line)
}

// fitWords joins as many words as fit in width cells, and clips the first if even that does not fit. The words steer
// nothing, no matter where they come from.
func fitWords(list []string, width int, style panel.Style) string {
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

// panelEvery is the period of the panel: figures that change more often cannot be read.
const panelEvery = 500 * time.Millisecond

// painted shows a run on a terminal: lines for what a user should know, and below them how
// it stands. The latest event is one of its rows, and makes no line.
type painted struct {
	plain
	screen *panel.Screen
	speeds func(n int) (perSecond []float64, span time.Duration)
}

// Panel shows a run on a screen. Speeds returns items a second in at most n equal parts of
// the last span, oldest first; nil: they are not known.
func Panel(screen *panel.Screen, speeds func(n int) (perSecond []float64, span time.Duration)) Manner {
	return Manner{&painted{screen: screen, speeds: speeds}, panelEvery}
}

func (p *painted) notice(at time.Time, code event.Code, text string) {
	p.above(func() { p.plain.notice(at, code, text) })
}

func (p *painted) log(line []byte) { p.above(func() { p.plain.log(line) }) }

func (p *painted) transition(*batch.Transition) {}

func (p *painted) longWait(w *batch.LongWait) { p.above(func() { p.plain.longWait(w) }) }

func (p *painted) changed(c *event.Changed) { p.above(func() { p.plain.changed(c) }) }

func (p *painted) all(e *event.Progress) { p.above(func() { p.plain.all(e) }) }

func (p *painted) status(e *event.Progress) {
	if p.speeds == nil {
		p.screen.Paint(e, nil, 0)
		return
	}
	speeds, span := p.speeds(panel.SpeedsFor(p.screen.Width()))
	p.screen.Paint(e, speeds, span)
}

func (p *painted) rows(layout func(width, height int) []string, _ string) { p.screen.PaintRows(layout) }

func (p *painted) summary(s *Report) {
	p.screen.Close()
	p.above(func() { p.plain.summary(s) })
}

// above writes lines above the panel. They steer nothing, no matter where their texts come
// from.
func (p *painted) above(write func()) {
	p.screen.Above(func(out io.Writer) {
		p.out = printable.Writer{Out: out}
		write()
	})
}
