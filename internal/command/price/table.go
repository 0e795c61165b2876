package price

import (
	"fmt"

	"github.com/headrace/headrace/provider"
)

// Table knows the prices of models by their names. A model that it does not know has no
// price, which is not a price of 0. The zero value knows no model. It does not change, so
// many goroutines may use it at once. A lookup of a name in small letters allocates nothing.
type Table struct {
	told   map[string]Price // --prices
	listed []modelPrices    // the built-in list's for one vendor; the first that knows a model counts
	others *Price           // --price
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

func (t *Table) read(file string) error {
	own, err := readFile(file)
	if err != nil {
		return err
	}
	t.told = make(map[string]Price, len(own))
	for name, e := range own {
		p, fault := e.price()
		if fault != "" {
			return fmt.Errorf("--prices: %s: %s: %s", file, name, fault)
		}
		t.told[name] = p
	}
	return nil
}

// Of returns the price of a model. It finds it by its name, by the name of which it is a
// dated build, or by a pattern of the list. It guesses no other name: gpt-4o-mini is not a
// gpt-4o. Dated means that the price is that of AsOf; it is false for the user's prices.
func (t Table) Of(model string) (p Price, dated, ok bool) {
	if p, ok = t.told[model]; ok {
		return p, false, true
	}
	if p, ok = t.told[Undated(model)]; ok {
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
