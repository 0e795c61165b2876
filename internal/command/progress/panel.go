package progress

import (
	"io"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/printable"
)

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

func (p *painted) transition(batch.Transition) {}

func (p *painted) longWait(w batch.LongWait) { p.above(func() { p.plain.longWait(w) }) }

func (p *painted) all(e *event.Progress) { p.above(func() { p.plain.all(e) }) }

func (p *painted) status(e *event.Progress) {
	if p.speeds == nil {
		p.screen.Paint(e, nil, 0)
		return
	}
	speeds, span := p.speeds(panel.SpeedsFor(p.screen.Width()))
	p.screen.Paint(e, speeds, span)
}

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
