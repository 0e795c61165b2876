package bank

import (
	"fmt"
	"io"
	"math"

	"github.com/headrace/headrace/tests/lab"
)

// The least differences that count: smaller ones are a world's own noise.
const (
	otherRatio    = 0.01
	otherRefusals = 0.005 // of the items
)

func differs(a, b Result) bool {
	return math.Abs(a.Ratio-b.Ratio) > otherRatio ||
		math.Abs(a.Refused-b.Refused) > otherRefusals*float64(a.Items) ||
		a.mark() != b.mark()
}

// PrintAgainst prints the worlds that differ from an older report, and the totals over the
// worlds that both have measured.
func (r Report) PrintAgainst(w io.Writer, old Report) error {
	before := map[string]Result{}
	for _, o := range old.Results {
		before[o.World] = o
	}
	cells := [][]string{{"world", "before", "", "now", "excess", "wasted", "most", "target", ""}}
	var then, now []Result
	for _, result := range r.Results {
		was, known := before[result.World]
		if !known {
			continue
		}
		then, now = append(then, was), append(now, result)
		if differs(was, result) {
			row := result.row()
			cells = append(cells, append([]string{row[0], was.cell(), was.mark()}, row[1:]...))
		}
	}
	if _, err := io.WriteString(w, lab.Aligned(cells)); err != nil {
		return err
	}
	warn := ""
	if r.Vary != old.Vary || fmt.Sprint(r.Seeds) != fmt.Sprint(old.Seeds) {
		warn = fmt.Sprintf("not the same numbers: before %+v, seeds %v\n", old.Vary, old.Seeds)
	}
	_, err := fmt.Fprintf(w, "\n%sbefore\n%snow\n%s%d of %d worlds differ.\n", warn, totals(then), totals(now), len(cells)-1, len(now))
	return err
}
