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

// mayBeOurs reports whether a line of ours may begin with text, as far as both of them go.
func mayBeOurs(text []byte) bool {
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

// totalCost returns what all tries of the item have cost, this one included.
func (e *Entry) totalCost() Earlier {
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
	line      rawjson.Parser
	inner     []rawjson.Member // of what headrace adds
	scratch   []rawjson.Member // for what lies deeper
	trustsSum bool             // the sum of a line is proof enough that it is JSON

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
		p.scratch = rawjson.Members(p.fault, p.scratch[:0])
		e.Code = string(rawjson.Unquote(memberValue(p.scratch, "code")))
	}
	for _, m := range p.inner {
		switch string(m.Name) {
		case "line":
			all.integer(&line, m.Value)
		case "attempts":
			all.integer(&e.Attempts, m.Value)
		case "usage":
			p.scratch = rawjson.Members(m.Value, p.scratch[:0])
			all.usage(&e.Usage, p.scratch)
		case "doubtful":
			p.scratch = rawjson.Members(m.Value, p.scratch[:0])
			all.doubtful(&e.Doubtful, p.scratch)
		case "cost_usd":
			e.CostUSD = new(float64)
			all.money(e.CostUSD, m.Value)
		case "earlier":
			p.scratch = rawjson.Members(m.Value, p.scratch[:0])
			all.earlier(&e.Earlier, p.scratch)
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

func (n *numbers) integer(into *int64, value []byte) {
	number, err := strconv.ParseInt(string(value), 10, 64)
	*into = number
	n.note(err)
}

func (n *numbers) money(into *float64, value []byte) {
	usd, err := strconv.ParseFloat(string(value), 64)
	*into = usd
	n.note(err)
}

// earlier reads the cost of earlier tries from the members of their object.
func (n *numbers) earlier(e *Earlier, ms []rawjson.Member) {
	for _, m := range ms {
		switch string(m.Name) {
		case "cost_usd":
			n.money(&e.CostUSD, m.Value)
		case "unpriced":
			n.integer(&e.Unpriced, m.Value)
		case "doubtful":
			n.doubtful(&e.Doubtful, rawjson.Members(m.Value, nil))
		}
	}
}

// doubtful reads the counts and the cost of doubtful calls from the members of their object.
func (n *numbers) doubtful(d *Doubtful, ms []rawjson.Member) {
	for _, m := range ms {
		switch string(m.Name) {
		case "calls":
			n.integer(&d.Calls, m.Value)
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
			n.integer(&u.InputTokens, m.Value)
		case "output_tokens":
			n.integer(&u.OutputTokens, m.Value)
		case "cached_tokens":
			n.integer(&u.CachedTokens, m.Value)
		case "cache_write_tokens":
			n.integer(&u.CacheWriteTokens, m.Value)
		case "reasoning_tokens":
			n.integer(&u.ReasoningTokens, m.Value)
		}
	}
}

// The codes of input lines that are never asked.
const (
	CodeInvalidLine    = "invalid_line"   // it is not a request
	CodeUntranslatable = "untranslatable" // it cannot be translated for the provider
)

// isUnaskedOf reports whether the line read last is about an input line that could not be asked, from one of the
// inputs. Its message then begins with the input's name.
func (p *Parser) isUnaskedOf(inputs []string) bool {
	if len(inputs) == 0 {
		return false
	}
	p.scratch = rawjson.Members(p.fault, p.scratch[:0])
	code := string(rawjson.Unquote(memberValue(p.scratch, "code")))
	message := string(rawjson.Unquote(memberValue(p.scratch, "message")))
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
	if len(text) < len(opening) || !mayBeOurs(text) || !sumHolds(text) || !p.members(text) {
		return sum, nil, errNotOurs
	}
	line := p.line.Members
	id, fault, head := memberValue(line, "id"), memberValue(line, "error"), memberValue(line, "headrace")
	if len(fault) == 0 || len(head) == 0 || head[0] != '{' {
		return sum, nil, errNotOurs
	}
	p.inner = rawjson.Members(head, p.inner[:0])
	key := memberValue(p.inner, "key")
	if !rawjson.IsString(key) || !rawjson.IsString(id) {
		return sum, nil, errNotOurs
	}
	sum, ok := keys.Parse(rawjson.Unquote(key))
	if !ok || !p.trustsSum && string(rawjson.Unquote(id)) != resultID(sum.String()) {
		return sum, nil, errNotOurs // the id is made of the key: a flipped bit in either shows
	}
	p.id = memberValue(line, "custom_id") // a string, as the line opens
	p.output, p.fault = memberValue(p.inner, "output"), fault
	p.simulated = string(memberValue(p.inner, "simulated")) == "true"
	return sum, fault, nil
}

// members finds the members of a line whose sum holds.
func (p *Parser) members(text []byte) bool {
	if p.trustsSum {
		p.line.Members = rawjson.Members(text, p.line.Members[:0])
		return true
	}
	return p.line.Parse(text) && (p.line.ASCII() || utf8.Valid(text))
}

// memberValue returns the value of a member, nil if it is missing.
func memberValue(ms []rawjson.Member, name string) []byte {
	for _, m := range ms {
		if string(m.Name) == name {
			return m.Value
		}
	}
	return nil
}
