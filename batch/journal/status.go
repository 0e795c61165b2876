package journal

import (
	"io/fs"
	"os"
	"time"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/provider/rawjson"
)

// maxNames bounds how many models, and how many codes of failures, a Progress counts by
// name. A file has a handful, and one with another on each line must not fill memory.
const maxNames = 1000

// Progress sums up a run from its two result files.
type Progress struct {
	Done      int                 // items with a result
	Filtered  int                 // of these, answers that a content filter has cut short or emptied
	Failed    int                 // items that failed for good, without those that have a result by now
	Simulated int                 // of both, those whose answer is made up
	Failures  map[string]int      // failed items by code, up to a thousand codes
	Models    map[string]int      // results by model, likewise
	Attempts  int64               // attempts made for the items with a result
	Usage     Usage               // of the items with a result
	Tried     int64               // attempts made for the items that failed
	Lost      Usage               // of the items that failed
	Doubtful  Doubtful            // of all items that ended: calls that the provider may bill in addition
	CostUSD   float64             // of all items that ended, as far as it is known, with earlier tries
	FailedUSD float64             // part of CostUSD: the items that failed
	AgainUSD  float64             // part of CostUSD: earlier tries of items that were asked again, or that no line is about
	Priced    int                 // items whose cost is known
	Lanes     map[string]LaneCost // by the lane that ended an item, up to a thousand lanes; of the items that Priced and Unpriced count
	Unpriced  int                 // items whose cost is unknown: results, items that failed and used tokens, and earlier tries
	// FirstLine and LastLine are the lowest and the highest input line that has ended
	// either way; 0 if none has.
	FirstLine, LastLine int
	Torn                int64     // bytes of a torn last line of the output: a run was killed, or is writing just now
	Changed             time.Time // when the output was last written to; zero if it is missing
}

// LaneCost sums up the cost of the items of one lane.
type LaneCost struct {
	USD              float64 // as far as it is known
	Priced, Unpriced int     // items
}

// An Item is a line of an output, or of its errors file. It is good until the function that got it returns.
type Item struct {
	Entry
	Model, Lane                   string
	QueuedMS, WaitedMS, LatencyMS int64  // before the first call, between calls, in the call that ended the item
	Text                          []byte // the line as it stands, with its line feed
}

// ReadProgress reads an output and its errors file and changes neither; a run may be
// writing to them. A missing file counts as empty. The errors are those of ReadJournal.
func ReadProgress(output, errorsPath string) (*Progress, error) {
	return ReadItems(output, errorsPath, nil)
}

// ReadItems is ReadProgress. It also passes each item that it counts to take: the results, then the
// failures. Nil takes none.
func ReadItems(output, errorsPath string, take func(*Item)) (*Progress, error) {
	p := newProgress()
	results, err := eachItem(output, errorsPath, func(sum keys.Sum, r *Record, l *Parser) error {
		e, err := l.entry(sum)
		if err != nil {
			return err
		}
		if r.Failed {
			p.addFailure(l, &e)
		} else {
			p.addResult(l, &e)
		}
		l.passItem(&e, r.Text, take)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.Torn = results.Torn
	if info, err := os.Stat(output); err == nil && info.Mode()&fs.ModeType == 0 {
		p.Changed = info.ModTime()
	}
	return p, nil
}

func newProgress() *Progress {
	return &Progress{Failures: make(map[string]int), Models: make(map[string]int), Lanes: make(map[string]LaneCost)}
}

// A Counter counts lines one by one, as [ReadItems] counts those of files. Its caller passes one line for each item.
type Counter struct {
	progress *Progress
	take     func(*Item)
	parse    Parser
}

// NewCounter returns a Counter, which also passes each item to take. Nil takes none.
func NewCounter(take func(*Item)) *Counter { return &Counter{progress: newProgress(), take: take} }

// Add counts a line of a result or of a failure, line feed included. Text that no journal has written is ErrDamaged.
func (c *Counter) Add(text []byte) error {
	e, err := c.parse.Parse(text)
	if err != nil {
		return err
	}
	if e.Failed {
		c.progress.addFailure(&c.parse, &e)
	} else {
		c.progress.addResult(&c.parse, &e)
	}
	c.parse.passItem(&e, text, c.take)
	return nil
}

// Progress returns the sums so far.
func (c *Counter) Progress() *Progress { return c.progress }

// passItem passes the line read last to take, with its model, lane and times. A number that cannot be read is 0.
func (p *Parser) passItem(e *Entry, text []byte, take func(*Item)) {
	if take == nil {
		return
	}
	var all numbers
	item := Item{Entry: *e, Text: text}
	for _, m := range p.inner {
		switch string(m.Name) {
		case "model":
			item.Model = string(rawjson.Unquote(m.Value))
		case "lane":
			item.Lane = string(rawjson.Unquote(m.Value))
		case "queued_ms":
			all.integer(&item.QueuedMS, m.Value)
		case "waited_ms":
			all.integer(&item.WaitedMS, m.Value)
		case "latency_ms":
			all.integer(&item.LatencyMS, m.Value)
		}
	}
	take(&item)
}

// addResult counts a result: its attempts, usage, cost and model.
func (p *Progress) addResult(l *Parser, e *Entry) {
	p.Done++
	if string(memberValue(l.inner, "filtered")) == "true" {
		p.Filtered++
	}
	p.Attempts += e.Attempts
	p.Usage.add(e.Usage)
	p.addCost(l, e.CostUSD)
	countName(p.Models, string(rawjson.Unquote(memberValue(l.inner, "model"))))
	p.addCommon(e)
}

// addFailure counts a failed item: its attempts, usage, cost and code.
func (p *Progress) addFailure(l *Parser, e *Entry) {
	p.Failed++
	p.Tried += e.Attempts
	p.Lost.add(e.Usage)
	if e.CostUSD != nil || e.Usage != (Usage{}) {
		p.FailedUSD += p.addCost(l, e.CostUSD)
	}
	countName(p.Failures, e.Code)
	p.addCommon(e)
}

// addCommon adds what results and failures have in common.
func (p *Progress) addCommon(e *Entry) {
	p.Doubtful.Add(e.Doubtful)
	p.Doubtful.Add(e.Earlier.Doubtful)
	p.CostUSD += e.Earlier.CostUSD
	p.AgainUSD += e.Earlier.CostUSD
	p.Unpriced += int(e.Earlier.Unpriced)
	if e.Simulated {
		p.Simulated++
	}
	if p.FirstLine == 0 || e.Line < p.FirstLine {
		p.FirstLine = e.Line
	}
	p.LastLine = max(p.LastLine, e.Line)
}

// addCost counts the cost of an item, nil if it is unknown.
func (p *Progress) addCost(l *Parser, cost *float64) (usd float64) {
	name := string(rawjson.Unquote(memberValue(l.inner, "lane")))
	lane, known := p.Lanes[name]
	if cost == nil {
		p.Unpriced++
		lane.Unpriced++
	} else {
		usd = *cost
		p.CostUSD += usd
		p.Priced++
		lane.USD += usd
		lane.Priced++
	}
	if known || len(p.Lanes) < maxNames {
		p.Lanes[name] = lane
	}
	return usd
}

// countName counts by name as long as the names are few.
func countName(names map[string]int, name string) {
	if _, known := names[name]; known || len(names) < maxNames {
		names[name]++
	}
}
