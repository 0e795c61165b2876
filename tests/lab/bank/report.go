package bank

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/headrace/headrace/tests/lab"
)

// A Report holds the results of a law in the bank, and the numbers that it ran on.
type Report struct {
	Law     string   `json:"law"`
	Seeds   []uint64 `json:"seeds"`
	Vary    Vary     `json:"vary"`
	Results []Result `json:"results"`
}

// Save writes the report, to compare with it later.
func (r Report) Save(file string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// Load reads a saved report.
func Load(file string) (Report, error) {
	var r Report
	data, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("load %s: %w", file, err)
	}
	return r, nil
}

// cell shows ratio · refusals (of which imposed), and further remarks.
func (r Result) cell() string {
	s := fmt.Sprintf("%.3f · %.0f", r.Ratio, r.Refused)
	if r.Imposed > 0 {
		s += fmt.Sprintf(" (%.0f)", r.Imposed)
	}
	if r.Undone > 0 {
		s += fmt.Sprintf(", %.0f%% undone", math.Ceil(100*r.Undone))
	}
	if r.Repeated > 0 {
		s += ", REPEATED"
	}
	return s
}

func (r Result) wasted() string {
	s := fmt.Sprintf("%.0f", r.Wasted)
	switch {
	case r.Recovered > 0:
		s += fmt.Sprintf(", back in %.1f s", r.Recovered.Seconds())
	case r.Recovered < 0:
		s += ", never back"
	}
	return s
}

func (r Result) mark() string {
	switch {
	case !r.Target.Asks():
		return "–"
	case r.Met():
		return "✓"
	default:
		return "✗"
	}
}

func (r Result) row() []string {
	target := ""
	if r.Target.Asks() {
		target = fmt.Sprintf("%.2f · %.0f%%", r.Target.Ratio, 100*r.Target.Excess)
	}
	return []string{
		r.World, r.cell(), fmt.Sprintf("%.1f%%", 100*r.Excess()), r.wasted(), fmt.Sprint(r.Most), target, r.mark(),
	}
}

var head = []string{"world", "ratio · refused (imposed)", "excess", "wasted", "most", "target", ""}

// Print prints every world, and the totals: those of the weak points apart.
func (r Report) Print(w io.Writer) error {
	cells := [][]string{head}
	for _, result := range r.Results {
		cells = append(cells, result.row())
	}
	_, err := io.WriteString(w, lab.Aligned(cells)+"\n"+totals(r.Results))
	return err
}

// totals has a line for the worlds and one for the weak points, so that the first stays
// comparable with reports from before the weak points.
func totals(some []Result) string {
	worlds, weak := apart(some)
	switch {
	case len(weak) == 0:
		return total(worlds).String() + "\n"
	case len(worlds) == 0:
		return weakTotal + total(weak).String() + "\n"
	default:
		return total(worlds).String() + "\n" + weakTotal + total(weak).String() + "\n"
	}
}

const weakTotal = "weak points: "

// apart divides results into worlds and weak points.
func apart(some []Result) (worlds, weak []Result) {
	for _, r := range some {
		if r.Weak {
			weak = append(weak, r)
		} else {
			worlds = append(worlds, r)
		}
	}
	return worlds, weak
}

// sum adds up the results of all worlds.
type sum struct {
	logRatio, refused  float64
	met, asked, undone int
}

// total adds up results. A world without a target is in the sums, and not among the worlds asked.
func total(some []Result) sum {
	var s sum
	for _, r := range some {
		s.logRatio += math.Log(r.Ratio)
		s.refused += r.Refused
		if r.Target.Asks() {
			s.asked++
			if r.Met() {
				s.met++
			}
		}
		if r.Undone > 0 {
			s.undone++
		}
	}
	return s
}

func (s sum) String() string {
	return fmt.Sprintf("Σ ln ratio %.2f · %.0f refused · %d undone · %d of %d worlds within target",
		s.logRatio, s.refused, s.undone, s.met, s.asked)
}
