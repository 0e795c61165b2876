package journal

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/headrace/headrace/batch/internal/keys"
)

// maxNames bounds how many models, and how many codes of failures, a Progress counts by
// name. A file has a handful, and one with another on each line must not fill memory.
const maxNames = 1000

// Progress sums up a run from its two result files.
type Progress struct {
	Done      int            // items with a result
	Filtered  int            // of these, answers that a content filter has cut short or emptied
	Failed    int            // items that failed for good, without those that have a result by now
	Simulated int            // of both, those whose answer is made up
	Failures  map[string]int // failed items by code, up to a thousand codes
	Models    map[string]int // results by model, likewise
	Attempts  int64          // attempts made for the items with a result
	Usage     Usage          // of the items with a result
	Doubtful  Doubtful       // of all items that ended: calls that the provider may bill in addition
	CostUSD   float64        // of all items that ended, as far as it is known
	FailedUSD float64        // part of CostUSD: the items that failed
	Priced    int            // items whose cost is known
	Unpriced  int            // items whose cost is unknown: results, and items that failed and used tokens
	// FirstLine and LastLine are the lowest and the highest input line that has ended
	// either way; 0 if none has.
	FirstLine, LastLine int
	Torn                int64     // bytes of a torn last line of the output: a run was killed, or is writing just now
	Changed             time.Time // when the output was last written to; zero if it is missing
}

// ReadProgress reads an output and its errors file and changes neither; a run may be
// writing to them. A missing file counts as empty. The errors are those of ReadJournal.
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

// progressLine holds the fields of a line that ReadProgress needs; the rest is not decoded.
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

// place returns the id of a line with its place in the input. If two lines give one id, it
// is good in one of them.
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

// addCost counts the cost of an item, nil if it is unknown.
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
