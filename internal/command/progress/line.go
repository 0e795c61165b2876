package progress

import (
	"strings"

	"github.com/headrace/headrace/internal/command/event"
)

// Line is how a run stands in one line, as Plain shows it. Whoever said what is in it, it has
// to be made printable.
func Line(p *event.Progress) string {
	return clockTime(elapsed(p)) + "  " + strings.Join(figures(p), "  ")
}
