package lab

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// String returns the mean as a cell of the table: ratio · refusals (other calls wasted).
func (m Mean) String() string {
	if m.Lost > 0 {
		return "never ends"
	}
	s := fmt.Sprintf("%.3f · %.0f", m.Ratio, m.Refused)
	if m.Wasted > 0 {
		s += fmt.Sprintf(" (%.0f)", m.Wasted)
	}
	if m.Repeated > 0 {
		s += " REPEATED"
	}
	return s
}

// A Column holds what is measured for each scenario. A zero Limit is the scenario's own;
// otherwise all of its limits are scaled as if 600 a minute were Limit.
type Column struct {
	Title string
	Law   func(Batch, uint64) Law
	Limit float64
	Seeds []uint64
}

func (c Column) measure(s Scenario) Mean {
	if c.Limit > 0 {
		s = s.Scaled(c.Limit / 600)
	}
	return Measure(s, c.Law, c.Seeds)
}

// Compare returns one column for each law, on those seeds.
func Compare(laws []Rival, seeds []uint64) []Column {
	columns := make([]Column, len(laws))
	for i, l := range laws {
		columns[i] = Column{Title: l.Name, Law: l.New, Seeds: seeds}
	}
	return columns
}

// HeldOut returns one law's columns for what it was tuned on, and for what nothing was tuned
// on.
func HeldOut(law Rival) []Column {
	columns := []Column{
		{Title: law.Name + ", tuned", Law: law.New, Seeds: TunedSeeds},
		{Title: "other seeds", Law: law.New, Seeds: HeldOutSeeds},
	}
	for _, limit := range HeldOutLimits {
		columns = append(columns, Column{Title: fmt.Sprintf("×%g/600", limit), Law: law.New, Limit: limit, Seeds: HeldOutSeeds})
	}
	return columns
}

// Table measures every cell, as many at a time as there are processors, and
// prints them as a Markdown table.
func Table(w io.Writer, rows []Scenario, columns []Column) error {
	cells := make([][]string, len(rows)+1)
	cells[0] = []string{"scenario"}
	for _, c := range columns {
		cells[0] = append(cells[0], c.Title)
	}
	var wait sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, s := range rows {
		cells[i+1] = make([]string, len(columns)+1)
		cells[i+1][0] = s.Name
		for j, c := range columns {
			room <- struct{}{}
			wait.Go(func() {
				cells[i+1][j+1] = c.measure(s).String()
				<-room
			})
		}
	}
	wait.Wait()
	_, err := io.WriteString(w, Aligned(cells))
	return err
}

// Aligned returns a Markdown table of the cells, the first row its head, with columns as
// wide as their widest cell. There must be a first row, and every row must be as long.
func Aligned(cells [][]string) string {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for j, cell := range row {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	var s strings.Builder
	for i, row := range cells {
		for j, cell := range row {
			fmt.Fprintf(&s, "| %s%s ", cell, strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)))
		}
		s.WriteString("|\n")
		if i == 0 {
			for _, width := range widths {
				s.WriteString("|" + strings.Repeat("-", width+2))
			}
			s.WriteString("|\n")
		}
	}
	return s.String()
}
