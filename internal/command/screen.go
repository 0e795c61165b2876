package command

import (
	"runtime"

	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/progress"
)

// width is how many columns the terminal has.
func (w *World) width() int {
	if w.terminal.size == nil {
		return progress.DefaultWidth
	}
	columns, _ := w.terminal.size()
	return columns
}

// newScreen paints on the terminal, which there must be.
func (r *runner) newScreen() *panel.Screen {
	screen := panel.NewScreen(r.screen, r.terminal.size, r.style())
	screen.Clock, screen.Foreground, screen.Continued = r.clock, r.terminal.foreground, r.terminal.continued
	screen.Reflows = panel.Reflows(r.env)
	return screen
}

// style is what may be shown on the terminal.
func (r *runner) style() panel.Style {
	style := panel.StyleOf(r.env, runtime.GOOS == "windows")
	switch r.flags.color {
	case colorAlways:
		style.Color = true
	case colorAuto:
		no, _ := r.env("NO_COLOR")
		style.Color = no == ""
	}
	return style
}
