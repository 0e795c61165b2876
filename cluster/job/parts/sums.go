package parts

import (
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
)

// Sums holds the totals of the lines of parts.
type Sums struct {
	Lines   int `json:"lines"`   // in all: done, failed and skipped
	Done    int `json:"done"`    // items with a result
	Failed  int `json:"failed"`  // items that failed for good, and may be tried again
	Skipped int `json:"skipped"` // lines that were never asked: bad ones, and untranslatable ones

	Simulated int           `json:"simulated,omitempty"` // items whose answer is made up
	Attempts  int64         `json:"attempts"`
	Usage     journal.Usage `json:"usage"`
	// Doubtful are the calls of items that may be billed in addition to Usage.
	Doubtful journal.Doubtful `json:"doubtful,omitzero"`
	CostUSD  float64          `json:"cost_usd"` // as far as it is known
	Priced   int              `json:"priced"`   // items whose cost is known
	// Unpriced are items of unknown cost: results, and failures that used tokens.
	Unpriced int `json:"unpriced"`
}

// skipped reports whether a line was never asked.
func skipped(e *journal.Entry) bool {
	return e.Code == promptfile.CodeInvalidLine || e.Code == promptfile.CodeUntranslatable
}

// add counts one line.
func (s *Sums) add(e *journal.Entry) {
	s.Lines++
	switch {
	case !e.Failed:
		s.Done++
	case skipped(e):
		s.Skipped++
		return
	default:
		s.Failed++
	}
	s.Attempts += e.Attempts
	s.Usage = plus(s.Usage, e.Usage)
	s.Doubtful.Add(e.Doubtful)
	if e.Simulated {
		s.Simulated++
	}
	switch {
	case e.CostUSD != nil:
		s.CostUSD += *e.CostUSD
		s.Priced++
	case !e.Failed || e.Usage != (journal.Usage{}):
		s.Unpriced++
	}
}

// Plus adds two sums.
func (s Sums) Plus(o Sums) Sums {
	s.Lines += o.Lines
	s.Done += o.Done
	s.Failed += o.Failed
	s.Skipped += o.Skipped
	s.Simulated += o.Simulated
	s.Attempts += o.Attempts
	s.Usage = plus(s.Usage, o.Usage)
	s.Doubtful.Add(o.Doubtful)
	s.CostUSD += o.CostUSD
	s.Priced += o.Priced
	s.Unpriced += o.Unpriced
	return s
}

// After returns the sums of a round together with those of the rounds before it, whose failed items it has tried
// again. Usage adds up; the failed items are those that failed last.
func (s Sums) After(before Sums) Sums {
	all := before.Plus(s)
	all.Lines, all.Failed = before.Lines, before.Failed-s.Done
	return all
}

func plus(a, b journal.Usage) journal.Usage {
	a.InputTokens += b.InputTokens
	a.OutputTokens += b.OutputTokens
	a.CachedTokens += b.CachedTokens
	a.CacheWriteTokens += b.CacheWriteTokens
	a.ReasoningTokens += b.ReasoningTokens
	return a
}
