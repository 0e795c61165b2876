package price

import (
	_ "embed" // for the list
	"encoding/json"
	"fmt"

	"github.com/headrace/headrace/provider"
)

// Table knows the prices of models by their names. A model that it does not know has no
// price, which is not a price of nothing. The zero value knows none. It does not change, so
// many goroutines may ask it at once; to ask allocates nothing.
type Table struct {
	models map[string]listed
	others *Price // --price
}

// listed is a model's price, and whether it is that of the built-in list.
type listed struct {
	Price
	dated bool
}

//go:embed list.json
var listJSON []byte

// list is what the providers' pages said on one day.
type list struct {
	AsOf   string           `json:"as_of"`
	Prices map[string]entry `json:"prices"`
}

// builtIn is the list of this build. A test reads it, so that it parses.
func builtIn() list {
	var l list
	if err := json.Unmarshal(listJSON, &l); err != nil {
		panic(err)
	}
	return l
}

// AsOf is the day of the built-in list.
func AsOf() string { return builtIn().AsOf }

// Read puts the user's prices over the built-in ones: those of a file, and one of all
// models that have none otherwise, written IN,OUT or IN,OUT,CACHED. Either may be "". Where
// nobody asks the makers of the models (own is true), the built-in list is left out. The
// error says which flag is wrong.
func Read(file, others string, own bool) (Table, error) {
	t := Table{models: map[string]listed{}}
	if !own {
		for name, e := range builtIn().Prices {
			p, _ := e.price() // a test has seen to it
			t.models[name] = listed{p, true}
		}
	}
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

func (t *Table) read(file string) error {
	own, err := readFile(file)
	if err != nil {
		return err
	}
	for name, e := range own {
		p, fault := e.price()
		if fault != "" {
			return fmt.Errorf("--prices: %s: %s: %s", file, name, fault)
		}
		t.models[name] = listed{p, false}
	}
	return nil
}

// Of is the price of a model, known by its name or by that of which it is a dated
// build. No other name is guessed: gpt-4o-mini is not a gpt-4o. Dated means that the price
// is that of AsOf; it is false for what the user has told.
func (t Table) Of(model string) (p Price, dated, ok bool) {
	l, ok := t.models[model]
	if !ok && len(t.models) > 0 {
		l, ok = t.models[Undated(model)]
	}
	if !ok && t.others != nil {
		return *t.others, false, true
	}
	return l.Price, l.dated, ok
}

// Cost is what a model's tokens cost, in USD; false: it is not known.
func (t Table) Cost(model string, u provider.Usage) (usd float64, known bool) {
	p, _, ok := t.Of(model)
	if !ok {
		return 0, false
	}
	return p.Of(u)
}

// Undated is the name of a model without the date that ends the name of one of its builds:
// gpt-4o for gpt-4o-2024-08-06, claude-sonnet-4 for claude-sonnet-4-20250514.
func Undated(model string) string {
	for _, date := range [...]string{"-20dd-dd-dd", "-20dddddd"} {
		if at := len(model) - len(date); at >= 0 && isDate(model[at:], date) {
			return model[:at]
		}
	}
	return model
}

// isDate reports whether s reads as a date does, where d is any digit. Both have the same
// length.
func isDate(s, date string) bool {
	for i := range len(s) {
		if date[i] != s[i] && (date[i] != 'd' || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}
