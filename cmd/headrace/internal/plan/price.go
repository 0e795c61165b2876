package plan

import (
	_ "embed" // for the tables
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/headrace/headrace/limiter"
)

// price is in USD per million tokens.
type price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

func (p price) of(input, output float64) float64 { return (p.Input*input + p.Output*output) / 1e6 }

// Prices knows the prices of models by their names. A model that it does not know has no
// price, which is not a price of nothing.
type Prices struct {
	models map[string]price
	others *price // --price
	dated  map[string]bool
}

// tables are prices and limits as they were published on a day.
type tables struct {
	AsOf   string           `json:"as_of"` // of the prices
	Prices map[string]price `json:"prices"`
	Tiers  []Tier           `json:"tiers"`
}

//go:embed tables.json
var tablesJSON []byte

// builtIn are the tables of this build. A test reads them, so that they parse.
func builtIn() tables {
	var t tables
	if err := json.Unmarshal(tablesJSON, &t); err != nil {
		panic(err)
	}
	return t
}

// ReadPrices puts the user's prices over the built-in ones: those of a file, and one of all
// models that have none otherwise, written IN,OUT. Either may be "". The error says which
// flag is wrong.
func ReadPrices(file, others string) (Prices, error) {
	l := Prices{models: map[string]price{}, dated: map[string]bool{}}
	for name, p := range builtIn().Prices {
		l.models[name], l.dated[name] = p, true
	}
	if file != "" {
		if err := l.read(file); err != nil {
			return l, err
		}
	}
	if others != "" {
		p, err := parsePrice(others)
		if err != nil {
			return l, err
		}
		l.others = &p
	}
	return l, nil
}

func (l *Prices) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--prices: %w: check the name of the file", err)
	}
	var own map[string]price
	if err := json.Unmarshal(text, &own); err != nil {
		return fmt.Errorf(`--prices: %s: %w: write {"model":{"input":2.5,"output":10}}, in USD per million tokens`, file, err)
	}
	for name, p := range own {
		if !p.valid() {
			return fmt.Errorf("--prices: %s: %s: a price is a number of 0 or more", file, name)
		}
		l.models[name], l.dated[name] = p, false
	}
	return nil
}

func (p price) valid() bool {
	return (limiter.Limits{RPM: p.Input, TPM: p.Output}).Validate() == nil // finite and not negative
}

func parsePrice(s string) (price, error) {
	in, out, ok := strings.Cut(s, ",")
	var (
		p            price
		errIn, errUt error
	)
	p.Input, errIn = strconv.ParseFloat(strings.TrimSpace(in), 64)
	p.Output, errUt = strconv.ParseFloat(strings.TrimSpace(out), 64)
	if !ok || errIn != nil || errUt != nil || !p.valid() {
		return p, fmt.Errorf("--price: %q is not understood: write IN,OUT in USD per million tokens, such as 2.5,10", s)
	}
	return p, nil
}

// build is the date that ends the name of a model's build, gpt-4o-2024-08-06 for one.
var build = regexp.MustCompile(`-20[0-9]{2}-?[0-9]{2}-?[0-9]{2}$`)

// of is the price of a model, known by its name or by that of which it is a dated
// build. No other name is guessed: gpt-4o-mini is not a gpt-4o.
func (l Prices) of(model string) (p price, dated, ok bool) {
	for _, name := range []string{model, build.ReplaceAllString(model, "")} {
		if p, ok := l.models[name]; ok {
			return p, l.dated[name], true
		}
	}
	if l.others != nil {
		return *l.others, false, true
	}
	return price{}, false, false
}
