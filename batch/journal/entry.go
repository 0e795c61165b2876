package journal

import (
	"strconv"

	"github.com/headrace/headrace/provider/rawjson"
)

// Entry holds what one line of ours says about its item: about its result, or its failure.
type Entry struct {
	Line      int    // in the input, from 1
	Key       string // identifies the question, 32 hex digits
	Failed    bool
	Code      string // the kind of the failure, "" of a result
	Attempts  int64
	Simulated bool
	Usage     Usage
	Doubtful  Doubtful
	CostUSD   *float64 // nil if it is not known
}

// Parser reads lines one by one, results and failures alike, from a file that holds both.
// The zero value is ready. A Parser belongs to one goroutine.
type Parser struct {
	line journalParser
	room []rawjson.Member // for what lies deeper
}

// Parse reads a line that AppendLine has written, line feed included. Any text that differs
// from such a line by a byte is ErrDamaged.
func (p *Parser) Parse(text []byte) (Entry, error) {
	sum, fault, err := p.line.read(text)
	if err != nil {
		return Entry{}, ErrDamaged
	}
	e := Entry{Key: sum.String(), Simulated: p.line.simulated}
	if e.Failed = !rawjson.IsNull(fault); e.Failed {
		p.room = rawjson.Members(fault, p.room[:0])
		e.Code = string(rawjson.Unquote(find(p.room, "code")))
	}
	return e, p.headrace(&e)
}

// headrace reads the line's last member.
func (p *Parser) headrace(e *Entry) error {
	var (
		line int64
		all  numbers
	)
	for _, m := range p.line.inner {
		switch string(m.Name) {
		case "line":
			all.read(&line, m.Value)
		case "attempts":
			all.read(&e.Attempts, m.Value)
		case "usage":
			p.room = rawjson.Members(m.Value, p.room[:0])
			all.usage(&e.Usage, p.room)
		case "doubtful":
			p.room = rawjson.Members(m.Value, p.room[:0])
			all.doubtful(&e.Doubtful, p.room)
		case "cost_usd":
			usd, err := strconv.ParseFloat(string(m.Value), 64)
			e.CostUSD = &usd
			all.note(err)
		}
	}
	e.Line = int(line)
	if all.bad || line < 1 {
		return ErrDamaged
	}
	return nil
}

// numbers reads the numbers of one line, and records whether one was bad.
type numbers struct{ bad bool }

func (n *numbers) note(err error) { n.bad = n.bad || err != nil }

func (n *numbers) read(into *int64, value []byte) {
	number, err := strconv.ParseInt(string(value), 10, 64)
	*into = number
	n.note(err)
}

func (n *numbers) doubtful(d *Doubtful, ms []rawjson.Member) {
	for _, m := range ms {
		if string(m.Name) == "calls" {
			n.read(&d.Calls, m.Value)
		}
	}
	n.usage(&d.Usage, ms)
}

func (n *numbers) usage(u *Usage, ms []rawjson.Member) {
	for _, m := range ms {
		switch string(m.Name) {
		case "input_tokens":
			n.read(&u.InputTokens, m.Value)
		case "output_tokens":
			n.read(&u.OutputTokens, m.Value)
		case "cached_tokens":
			n.read(&u.CachedTokens, m.Value)
		case "cache_write_tokens":
			n.read(&u.CacheWriteTokens, m.Value)
		case "reasoning_tokens":
			n.read(&u.ReasoningTokens, m.Value)
		}
	}
}
