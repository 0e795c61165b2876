package journal

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/provider/rawjson"
)

// opening is the beginning of each line of ours; each # stands for a lower-case hex digit.
// No other program's line is likely to begin so by chance.
const opening = `{"id":"hr-########################","custom_id":"`

// opens reports whether a line of ours may begin with text, as far as both of them go.
func opens(text []byte) bool {
	for i := range min(len(text), len(opening)) {
		switch c := text[i]; {
		case opening[i] != '#':
			if c != opening[i] {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

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
	Earlier   Earlier  // tries of earlier runs
}

// all returns what all tries of the item have cost, this one included.
func (e *Entry) all() Earlier {
	sum := e.Earlier
	sum.Doubtful.Add(e.Doubtful)
	switch {
	case e.CostUSD != nil:
		sum.CostUSD += *e.CostUSD
	case !e.Failed || e.Usage != (Usage{}):
		sum.Unpriced++
	}
	return sum
}

// Parser reads lines one by one, results and failures alike, from a file that holds both.
// The zero value is ready. A Parser belongs to one goroutine.
type Parser struct {
	line  rawjson.Parser
	inner []rawjson.Member // of what headrace adds
	room  []rawjson.Member // for what lies deeper
	skims bool             // the sum of a line is proof enough that it is JSON

	// Of the line read last:
	id        []byte // its custom id, quoted
	output    []byte // the output that it names, quoted; nil if it names none
	simulated bool
	fault     []byte // why its item failed, null if it did not
}

// Parse reads a line that AppendLine has written, line feed included. Any text that differs
// from such a line by a byte is ErrDamaged.
func (p *Parser) Parse(text []byte) (Entry, error) {
	sum, _, err := p.read(text)
	if err != nil {
		return Entry{}, ErrDamaged
	}
	e, err := p.entry(sum)
	if e.Line < 1 {
		err = ErrDamaged
	}
	return e, err
}

// entry returns what the line read last says; sum is its key.
func (p *Parser) entry(sum keys.Sum) (e Entry, err error) {
	var (
		line int64
		all  numbers
	)
	e = Entry{Key: sum.String(), Simulated: p.simulated}
	if e.Failed = !rawjson.IsNull(p.fault); e.Failed {
		p.room = rawjson.Members(p.fault, p.room[:0])
		e.Code = string(rawjson.Unquote(find(p.room, "code")))
	}
	for _, m := range p.inner {
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
			e.CostUSD = new(float64)
			all.money(e.CostUSD, m.Value)
		case "earlier":
			p.room = rawjson.Members(m.Value, p.room[:0])
			all.earlier(&e.Earlier, p.room)
		}
	}
	e.Line = int(line)
	if all.bad {
		return e, ErrDamaged
	}
	return e, nil
}

// numbers reads the numbers of one line, and records whether one was bad.
type numbers struct{ bad bool }

func (n *numbers) note(err error) { n.bad = n.bad || err != nil }

func (n *numbers) read(into *int64, value []byte) {
	number, err := strconv.ParseInt(string(value), 10, 64)
	*into = number
	n.note(err)
}

func (n *numbers) money(into *float64, value []byte) {
	usd, err := strconv.ParseFloat(string(value), 64)
	*into = usd
	n.note(err)
}

func (n *numbers) earlier(e *Earlier, ms []rawjson.Member) {
	for _, m := range ms {
		switch string(m.Name) {
		case "cost_usd":
			n.money(&e.CostUSD, m.Value)
		case "unpriced":
			n.read(&e.Unpriced, m.Value)
		case "doubtful":
			n.doubtful(&e.Doubtful, rawjson.Members(m.Value, nil))
		}
	}
}

func (n *numbers) doubtful(d *Doubtful, ms []rawjson.Member) {
	for _, m := range ms {
		switch string(m.Name) {
		case "calls":
			n.read(&d.Calls, m.Value)
		case "at_most_usd":
			n.money(&d.USD, m.Value)
		}
	}
	n.usage(&d.Usage, ms)
}

// usage reads the counts of tokens among the members. It passes over all others, as the members
// of doubtful usage also hold a number of calls.
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

// The codes of input lines that are never asked.
const (
	CodeInvalidLine    = "invalid_line"   // it is not a request
	CodeUntranslatable = "untranslatable" // it cannot be translated for the provider
)

// unasked reports whether the line read last has one of these codes and is from one of the
// inputs: its message begins with the name.
func (p *Parser) unasked(inputs []string) bool {
	if len(inputs) == 0 {
		return false
	}
	p.room = rawjson.Members(p.fault, p.room[:0])
	code := string(rawjson.Unquote(find(p.room, "code")))
	message := string(rawjson.Unquote(find(p.room, "message")))
	return (code == CodeInvalidLine || code == CodeUntranslatable) &&
		slices.ContainsFunc(inputs, func(name string) bool { return strings.HasPrefix(message, name+":") })
}

var errNotOurs = errors.New("not a line of ours")

// key returns the key of a whole line in a file of results, or of failed items.
func (p *Parser) key(text []byte, failed bool) (keys.Sum, error) {
	sum, fault, err := p.read(text)
	if err == nil && failed == rawjson.IsNull(fault) {
		err = ErrOtherKind
	}
	return sum, err
}

// read reads a whole line. It returns the key, and why the item failed, null if it did not.
func (p *Parser) read(text []byte) (sum keys.Sum, fault []byte, err error) {
	if len(text) < len(opening) || !opens(text) || !sumHolds(text) || !p.members(text) {
		return sum, nil, errNotOurs
	}
	line := p.line.Members
	id, fault, head := find(line, "id"), find(line, "error"), find(line, "headrace")
	if len(fault) == 0 || len(head) == 0 || head[0] != '{' {
		return sum, nil, errNotOurs
	}
	p.inner = rawjson.Members(head, p.inner[:0])
	key := find(p.inner, "key")
	if !rawjson.IsString(key) || !rawjson.IsString(id) {
		return sum, nil, errNotOurs
	}
	sum, ok := keys.Parse(rawjson.Unquote(key))
	if !ok || !p.skims && string(rawjson.Unquote(id)) != resultID(sum.String()) {
		return sum, nil, errNotOurs // the id is made of the key: a flipped bit in either shows
	}
	p.id = find(line, "custom_id") // a string, as the line opens
	p.output, p.fault = find(p.inner, "output"), fault
	p.simulated = string(find(p.inner, "simulated")) == "true"
	return sum, fault, nil
}

// members finds the members of a line whose sum holds.
func (p *Parser) members(text []byte) bool {
	if p.skims {
		p.line.Members = rawjson.Members(text, p.line.Members[:0])
		return true
	}
	return p.line.Parse(text) && (p.line.ASCII() || utf8.Valid(text))
}

// find returns the value of a member, nil if it is missing.
func find(ms []rawjson.Member, name string) []byte {
	for _, m := range ms {
		if string(m.Name) == name {
			return m.Value
		}
	}
	return nil
}
