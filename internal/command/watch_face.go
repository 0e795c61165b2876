package command

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/timeline"
)

// face returns that of the terminal at standard output, if there is one that can be steered.
func (w *watched) face() face {
	lines := &lines{out: forPeople(w.stdout), now: w.clock.Now}
	file, ok := w.stdout.(*os.File)
	if !ok {
		return lines
	}
	at := terminalAt(file)
	if at.size == nil {
		return lines
	}
	style := panel.StyleOf(w.env, runtime.GOOS == "windows")
	no, _ := w.env("NO_COLOR")
	style.Color = no == ""
	screen := panel.NewScreen(file, at.size, style)
	screen.Clock, screen.Foreground, screen.Continued = w.clock, at.foreground, at.continued
	return &painted{screen: screen, out: lines.out}
}

// painted shows a run as its own terminal does.
type painted struct {
	screen *panel.Screen
	out    io.Writer // gets the lines when nothing is painted any more
	ended  *event.Progress
}

func (p *painted) show(e *event.Progress, of *timeline.Reader) {
	if e == nil {
		return
	}
	speeds, span := of.Speeds(panel.SpeedsFor(p.screen.Width()))
	p.screen.Paint(e, speeds, span)
}

func (p *painted) last(e *event.Progress, _ *timeline.Reader) { p.ended = e }

func (p *painted) end(why string) {
	p.screen.Close()
	if p.ended != nil {
		fmt.Fprintln(p.out, strings.Join(event.Lines(p.ended), "\n"))
	}
	if why != "" {
		fmt.Fprintln(p.out, why)
	}
}
