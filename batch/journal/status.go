package journal

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/headrace/headrace/batch/internal/keys"
)

// maxNames is how many models, and how many codes of failures, a Progress counts by
// name: a file has a handful, and one with another on each line must not fill memory.
const maxNames = 1000

// Progress is what two result files tell of a run.
type Progress struct {
	Done      int            // items with a result
	Filtered  int            // of these, answers that a content filter has cut short or emptied
	Failed    int            // items that failed for good; not those with a result by now
	Simulated int            // of both, those that no provider was asked about
	Failures  map[string]int // failed items by code, a thousand of them
	Models    map[string]int // results by model, likewise
	Attempts  int64          // that were made for the items with a result
	Usage     Usage          // of the items with a result
	Doubtful  Doubtful       // of all items that ended: what the provider may bill in addition to what they used
	CostUSD   float64        // of all items that ended, as far as it is known
	FailedUSD float64        // of CostUSD, that of items that failed
	Priced    int            // items whose cost is known
	Unpriced  int            // items whose cost is not: results, and items that failed and used tokens
	// FirstLine and LastLine are the lowest and the highest line number of the input
	// that has ended either way; 0 if none has.
	FirstLine, LastLine int
	Torn                int64     // bytes of a torn last line of the output: a run was killed, or writes just now
	Changed             time.Time // when the output was last written to; zero if it is not there
}

// ReadProgress reads an output and its errors file and changes neither; a run may
// be writing to them. A file that is not there counts as empty. The errors are those of ReadJournal.
func ReadProgress(output, errorsPath string) (*Progress, error) {
	p := &Progress{Failures: make(map[string]int), Models: make(map[string]int)}
	results, err := readJournal(output, false, nil)
	if err != nil {
		return nil, err
	}
	p.Torn = results.Torn
	asked := newIDSet()
	if err := p.read(results, func(_ keys.Sum, l *progressLine) bool { asked.Add(l.place()); return true }, p.addResult); err != nil {
		return nil, err
	}
	failures, err := ReadErrorsOf(output, errorsPath, output)
	if err != nil {
		return nil, err
	}
	var seen KeySet
	fresh := func(sum keys.Sum, l *progressLine) bool {
		return !results.Keys.sums.Has(sum) && !l.corrected(asked) && seen.add(sum)
	}
	if err := p.read(failures, fresh, p.addFailure); err != nil {
		return nil, err
	}
	if info, err := os.Stat(output); err == nil && info.Mode()&fs.ModeType == 0 {
		p.Changed = info.ModTime()
	}
	return p, nil
}

// progressLine is what a status needs of a line; the rest is not decoded.
type progressLine struct {
	CustomID string   `json:"custom_id"`
	Error    *Failure `json:"error"`
	Headrace struct {
		Line      int      `json:"line"`
		Attempts  int      `json:"attempts"`
		Model     string   `json:"model"`
		Simulated bool     `json:"simulated"`
		Filtered  bool     `json:"filtered"`
		Usage     Usage    `json:"usage"`
		Doubtful  Doubtful `json:"doubtful"`
		CostUSD   *float64 `json:"cost_usd"`
	} `json:"headrace"`
}

// place is the id of a line and where it stands in the input: an id that two lines give is good
// in one of them.
func (l *progressLine) place() string { return fmt.Sprintf("%d %s", l.Headrace.Line, l.CustomID) }

// corrected reports whether a line that could not be asked has a result by now.
func (l *progressLine) corrected(asked *IDSet) bool {
	unasked := l.Error.Code == CodeInvalidLine || l.Error.Code == CodeUntranslatable
	return unasked && asked.Has(l.place())
}

func (p *Progress) read(j *Journal, counts func(keys.Sum, *progressLine) bool, add func(*progressLine)) error {
	err := j.each(func(_ int, sum keys.Sum, text []byte, ours bool) error {
		if !ours {
			return nil
		}
		var l progressLine
		if err := json.Unmarshal(text, &l); err != nil {
			return ErrDamaged
		}
		if !counts(sum, &l) {
			return nil
		}
		add(&l)
		p.Doubtful.Add(l.Headrace.Doubtful)
		if l.Headrace.Simulated {
			p.Simulated++
		}
		p.span(l.Headrace.Line)
		return nil
	})
	if err != nil {
		return fmt.Errorf("journal: read %s: %w", j.path, err)
	}
	return nil
}

func (p *Progress) addResult(l *progressLine) {
	h := &l.Headrace
	p.Done++
	if h.Filtered {
		p.Filtered++
	}
	p.Attempts += int64(h.Attempts)
	p.Usage.add(h.Usage)
	p.addCost(h.CostUSD)
	countName(p.Models, h.Model)
}

func (p *Progress) addFailure(l *progressLine) {
	p.Failed++
	if h := &l.Headrace; h.CostUSD != nil || h.Usage != (Usage{}) {
		p.FailedUSD += p.addCost(h.CostUSD)
	}
	countName(p.Failures, l.Error.Code)
}

// addCost counts what an item has cost, nil if that is not known.
func (p *Progress) addCost(cost *float64) (usd float64) {
	if cost == nil {
		p.Unpriced++
		return 0
	}
	p.CostUSD += *cost
	p.Priced++
	return *cost
}

// countName counts by name as long as the names are few.
func countName(names map[string]int, name string) {
	if _, known := names[name]; known || len(names) < maxNames {
		names[name]++
	}
}

func (p *Progress) span(line int) {
	if p.FirstLine == 0 || line < p.FirstLine {
		p.FirstLine = line
	}
	p.LastLine = max(p.LastLine, line)
}
