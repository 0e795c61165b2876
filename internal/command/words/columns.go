package words

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Columns writes lines whose cells are divided by tabs, side by side with a gap between them, and
// without blanks at their ends.
func Columns(out io.Writer, gap int, lines string) {
	var all strings.Builder
	table := tabwriter.NewWriter(&all, 0, 0, gap, ' ', 0)
	_, _ = io.WriteString(table, lines) // to memory
	_ = table.Flush()
	for line := range strings.Lines(all.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}
