package price

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

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
