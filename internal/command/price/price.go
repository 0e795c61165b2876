package price

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/headrace/headrace/provider"
)

// Rates are USD per million tokens. Each is 0 or more, and at most mostPrice.
type Rates struct {
	Input  float64
	Output float64
	Cached float64 // of input that was read from a cache
	Write  float64 // of input that was written to a cache
}

// Price holds the rates of a model. The zero value is the price of a free model.
type Price struct {
	Rates
	Above []Step // in rising order
}

// Step holds the Rates of a whole request whose prompt has more than so many tokens.
type Step struct {
	Tokens int64
	Rates
}

// at returns the rates of a request with such a prompt, tokens of caches included.
func (p *Price) at(prompt float64) Rates {
	r := p.Rates
	for _, s := range p.Above {
		if prompt > float64(s.Tokens) {
			r = s.Rates
		}
	}
	return r
}

// Of returns the cost of so many tokens, in USD. A call that reported no tokens has no known
// cost, unless the price is 0.
func (p *Price) Of(u provider.Usage) (usd float64, known bool) {
	if p.Rates == (Rates{}) && len(p.Above) == 0 {
		return 0, true
	}
	if u.InputTokens == 0 && u.OutputTokens == 0 {
		return 0, false
	}
	r := p.at(float64(u.InputTokens))
	cached := min(u.CachedTokens, u.InputTokens) // parts never exceed the whole
	written := min(u.CacheWriteTokens, u.InputTokens-cached)
	plain := u.InputTokens - cached - written
	usd = Tidy((r.Input*float64(plain) + r.Cached*float64(cached) + r.Write*float64(written) + r.Output*float64(u.OutputTokens)) / 1e6)
	return usd, provider.IsCost(usd) // the provider's counts may be nonsense
}

// Estimate returns what so many tokens would cost, in USD, without any cache.
func (p *Price) Estimate(input, output float64) float64 {
	r := p.at(input)
	return (r.Input*input + r.Output*output) / 1e6
}

// picodollars is the number of units of money in a dollar. A price of a millionth of a dollar
// per million tokens is one unit for each token.
const picodollars = 1e12

// Tidy removes what arithmetic with fractions adds to a sum of money, so that it reads as it
// would by hand: 0.00003 and not 0.000030000000000000004.
func Tidy(usd float64) float64 {
	whole := math.Round(usd * picodollars)
	if whole == 0 || whole >= 1<<53 { // below the unit, or too large to resolve it
		return usd
	}
	return whole / picodollars
}

// mostPrice is the highest believable price, a thousand dollars a token. A higher one is a
// slip, and a sum of such costs might overflow.
const mostPrice = 1e9

func isPrice(usd float64) bool { return usd >= 0 && usd <= mostPrice }

// Table knows the prices of models by their names. A model that it does not know has no
// price, which is not a price of 0. The zero value knows no model. It does not change, so
// many goroutines may use it at once. A lookup of a name in small letters allocates nothing.
type Table struct {
	fromFile map[string]Price // --prices
	listed   []modelPrices    // the built-in list's for one vendor; the first that knows a model counts
	others   *Price           // --price
}

// Read puts the user's prices over those that the built-in list has for a vendor. The user's
// are those of a file, and one price for all models that have no other, written IN,OUT,
// IN,OUT,CACHED or IN,OUT,CACHED,WRITE. Each may be "". The error says which flag is wrong.
func Read(file, others, vendor string) (Table, error) {
	l := list()
	t := Table{listed: l.of(vendor)}
	if file != "" {
		if err := t.read(file); err != nil {
			return Table{}, err
		}
	}
	if others != "" {
		p, err := parse(others)
		if err != nil {
			return Table{}, err
		}
		t.others = &p
	}
	return t, nil
}

// read takes the prices of the user's file. A single faulty one refuses the file.
func (t *Table) read(file string) error {
	own, err := readFile(file)
	if err != nil {
		return err
	}
	t.fromFile = make(map[string]Price, len(own))
	for name, e := range own {
		p, fault := e.price()
		if fault != "" {
			return fmt.Errorf("--prices: %s: %s: %s", file, name, fault)
		}
		t.fromFile[name] = p
	}
	return nil
}

// Of returns the price of a model. It finds it by its name, by the name of which it is a
// dated build, or by a pattern of the list. It guesses no other name: gpt-4o-mini is not a
// gpt-4o. Dated means that the price is that of AsOf; it is false for the user's prices.
func (t Table) Of(model string) (p Price, dated, ok bool) {
	if p, ok = t.fromFile[model]; ok {
		return p, false, true
	}
	if p, ok = t.fromFile[Undated(model)]; ok {
		return p, false, true
	}
	for i := range t.listed {
		listed, known := t.listed[i].find(model)
		if listed != nil {
			return *listed, true, true
		}
		if known {
			break // no other source has this vendor's price
		}
	}
	if t.others != nil {
		return *t.others, false, true
	}
	return Price{}, false, false
}

// Cost returns the cost of a model's tokens, in USD; false: it is not known.
func (t Table) Cost(model string, u provider.Usage) (usd float64, known bool) {
	p, _, ok := t.Of(model)
	if !ok {
		return 0, false
	}
	return p.Of(u)
}

// Undated returns the name of a model without the date at the end of a build's name: gpt-4o
// for gpt-4o-2024-08-06, claude-sonnet-4 for claude-sonnet-4-20250514.
func Undated(model string) string {
	for _, date := range [...]string{"-20dd-dd-dd", "-20dddddd"} {
		if at := len(model) - len(date); at >= 0 && isDate(model[at:], date) {
			return model[:at]
		}
	}
	return model
}

// isDate reports whether s looks like the pattern date, where d is any digit. Both have the
// same length.
func isDate(s, date string) bool {
	for i := range len(s) {
		if date[i] != s[i] && (date[i] != 'd' || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

// entry is a price as a file writes it. A missing part is not known.
type entry struct {
	rates
	Above []above `json:"above"`
}

// rates are Rates as a file writes them.
type rates struct {
	Input  *float64 `json:"input"`
	Output *float64 `json:"output"`
	Cached *float64 `json:"cached"`
	Write  *float64 `json:"cache_write"`
}

// above is a Step as a file writes it.
type above struct {
	Tokens int64 `json:"tokens"`
	rates
}

// price returns the price in the file, or its fault.
func (e entry) price() (p Price, fault string) {
	if p.Rates, fault = e.read(); fault != "" {
		return p, fault
	}
	last := int64(0)
	for _, a := range e.Above {
		r, fault := a.read()
		if fault == "" && a.Tokens <= last {
			fault = fmt.Sprintf("tokens of %d: want more than %d", a.Tokens, last)
		}
		if fault != "" {
			return p, "above: " + fault
		}
		last, p.Above = a.Tokens, append(p.Above, Step{a.Tokens, r})
	}
	return p, ""
}

// read returns the rates in the file, or their fault. It refuses rates without one for input or
// for output, which would be 0. A missing rate of a cache is that of input, as such tokens
// count as input.
func (r rates) read() (out Rates, fault string) {
	if r.Input == nil || r.Output == nil {
		return out, "its input or output is missing: write 0 for free"
	}
	out = Rates{Input: *r.Input, Output: *r.Output, Cached: *r.Input, Write: *r.Input}
	if r.Cached != nil {
		out.Cached = *r.Cached
	}
	if r.Write != nil {
		out.Write = *r.Write
	}
	if !isPrice(out.Input) || !isPrice(out.Output) || !isPrice(out.Cached) || !isPrice(out.Write) {
		return out, "want a number from 0 to 1e9"
	}
	return out, ""
}

const fileHelp = `write {"model":{"input":2.5,"output":10}}, in USD per million tokens; cached input and cache writes ` +
	`may have prices of their own, "cached":1.25 and "cache_write":3, and a long prompt its own prices, "above":[{"tokens":200000,"input":5,"output":20}]`

// readFile reads a file of prices. It refuses unknown fields, since it would not count them.
func readFile(file string) (own map[string]entry, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--prices: %w: check the name of the file", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(&own); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after its end")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--prices: %s: %w: %s", file, err, fileHelp)
	}
	return own, nil
}

// parse reads IN,OUT, IN,OUT,CACHED or IN,OUT,CACHED,WRITE.
func parse(s string) (Price, error) {
	var amounts []*float64
	for part := range strings.SplitSeq(s, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return Price{}, notUnderstood(s)
		}
		amounts = append(amounts, &x)
	}
	if len(amounts) < 2 || len(amounts) > 4 {
		return Price{}, notUnderstood(s)
	}
	amounts = append(amounts, nil, nil)
	p, fault := entry{rates: rates{amounts[0], amounts[1], amounts[2], amounts[3]}}.price()
	if fault != "" {
		return Price{}, notUnderstood(s)
	}
	return p, nil
}

func notUnderstood(s string) error {
	return fmt.Errorf("--price: %q is invalid: write IN,OUT, IN,OUT,CACHED or IN,OUT,CACHED,WRITE in USD per million tokens, such as 2.5,10, none of them above 1e9", s)
}
