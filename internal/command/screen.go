package command

import (
	"runtime"

	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/progress"
)

// width returns the number of columns of the terminal.
func (w *World) width() int {
	if w.terminal.size == nil {
		return progress.DefaultWidth
	}
	columns, _ := w.terminal.size()
	return columns
}

// newScreen returns a screen on the terminal, which must exist.
func (r *runner) newScreen() *panel.Screen {
	screen := panel.NewScreen(r.screen, r.terminal.size, r.style())
	screen.Clock, screen.Foreground, screen.Continued = r.clock, r.terminal.foreground, r.terminal.continued
	screen.Reflows = panel.Reflows(r.env)
	return screen
}

// style returns what the terminal may show.
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
