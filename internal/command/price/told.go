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

// entry is a price as it is written in a file. What is left out is not known.
type entry struct {
	Input  *float64 `json:"input"`
	Output *float64 `json:"output"`
	Cached *float64 `json:"cached"`
}

// price is what is written, or what is wrong with it. A part that is left out would be one
// of nothing, but for what is cached: that is input.
func (e entry) price() (p Price, fault string) {
	if e.Input == nil || e.Output == nil {
		return p, "its input or output is missing: write 0 for what is free"
	}
	p = Price{Input: *e.Input, Output: *e.Output, Cached: *e.Input}
	if e.Cached != nil {
		p.Cached = *e.Cached
	}
	if !p.valid() {
		return p, "a price is a number of 0 or more, and at most 1e9"
	}
	return p, ""
}

func (p Price) valid() bool { return isPrice(p.Input) && isPrice(p.Output) && isPrice(p.Cached) }

const fileHelp = `write {"model":{"input":2.5,"output":10}}, in USD per million tokens; what is cached may have its own price, "cached":1.25`

// readFile reads a file of prices. What it says and is not understood is refused, since it
// would not be counted.
func readFile(file string) (own map[string]entry, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--prices: %w: check the name of the file", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(&own); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind its end")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--prices: %s: %w: %s", file, err, fileHelp)
	}
	return own, nil
}

// parse reads IN,OUT or IN,OUT,CACHED.
func parse(s string) (Price, error) {
	var amounts []*float64
	for part := range strings.SplitSeq(s, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return Price{}, notUnderstood(s)
		}
		amounts = append(amounts, &x)
	}
	if len(amounts) == 2 {
		amounts = append(amounts, nil)
	}
	if len(amounts) != 3 {
		return Price{}, notUnderstood(s)
	}
	p, fault := entry{amounts[0], amounts[1], amounts[2]}.price()
	if fault != "" {
		return Price{}, notUnderstood(s)
	}
	return p, nil
}

func notUnderstood(s string) error {
	return fmt.Errorf("--price: %q is not understood: write IN,OUT or IN,OUT,CACHED in USD per million tokens, such as 2.5,10, none of them above 1e9", s)
}
