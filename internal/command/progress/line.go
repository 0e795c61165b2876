package progress

import (
	"strings"

	"github.com/headrace/headrace/internal/command/event"
)

// Line shows how a run stands in one line, as Plain does. The caller has to make it
// printable, no matter where its texts come from.
func Line(p *event.Progress) string {
	return clockTime(elapsed(p)) + "  " + strings.Join(figures(p), "  ")
}
