package price

import (
	_ "embed" // for the list
	"encoding/json"
	"slices"
	"strings"
)

//go:embed list.json
var listJSON []byte

// builtIn is the list of this build, which tools/prices wrote. A test reads all of it, so that it parses.
type builtIn struct {
	Source  string                     `json:"source"` // the package that the data come from, and its version
	AsOf    string                     `json:"as_of"`  // the day of that version
	Vendors map[string][]string        `json:"vendors"`
	Models  map[string]json.RawMessage `json:"models"` // of each source
}

func list() builtIn {
	var l builtIn
	must(json.Unmarshal(listJSON, &l))
	return l
}

// must panics if a part of the build does not parse.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// AsOf returns the day of the built-in list.
func AsOf() string { return list().AsOf }

// Source names the data of the built-in list, with its version.
func Source() string { return list().Source }

// of returns a vendor's prices for its models; nil: they are not known.
func (l *builtIn) of(vendor string) []modelPrices {
	var all []modelPrices
	for _, source := range l.Vendors[vendor] {
		var models []listed
		must(json.Unmarshal(l.Models[source], &models))
		all = append(all, modelPricesOf(models))
	}
	return all
}

// listed is a model of the list, with its names. A * in a name stands for any run of
// characters. Without an input it has no price in tokens.
type listed struct {
	Match []string `json:"match"`
	entry
}

// modelPrices finds the models of one source by their names. A model without a price maps to
// nil.
type modelPrices struct {
	names    map[string]*Price
	patterns []pattern // the longest first, as it is the most specific
}

type pattern struct {
	start, middle, end string // of the name, in small letters
	price              *Price
}

func (p pattern) matches(name string) bool {
	return len(name) >= len(p.start)+len(p.middle)+len(p.end) && strings.HasPrefix(name, p.start) && strings.HasSuffix(name, p.end) &&
		strings.Contains(name[len(p.start):len(name)-len(p.end)], p.middle)
}

// modelPricesOf makes a source's list ready for find. A model without a price in tokens is
// known, and has none.
func modelPricesOf(models []listed) modelPrices {
	c := modelPrices{names: make(map[string]*Price, len(models))}
	for _, m := range models {
		var price *Price
		if m.Input != nil {
			p, _ := m.price() // a test makes sure that it is valid
			price = &p
		}
		for _, name := range m.Match {
			c.add(name, price)
		}
	}
	slices.SortStableFunc(c.patterns, func(a, b pattern) int {
		return len(b.start) + len(b.middle) + len(b.end) - len(a.start) - len(a.middle) - len(a.end)
	})
	return c
}

// add adds a name; if two models share a name, the first has it.
func (c *modelPrices) add(name string, price *Price) {
	lower := strings.ToLower(name)
	if parts := strings.Split(lower, "*"); len(parts) > 1 {
		c.patterns = append(c.patterns, pattern{parts[0], strings.Join(parts[1:len(parts)-1], "*"), parts[len(parts)-1], price})
		return
	}
	for _, spelling := range [...]string{name, lower} {
		if _, taken := c.names[spelling]; !taken {
			c.names[spelling] = price
		}
	}
}

// find finds a model by its name, in upper or lower case. Else it tries the name of which the
// model is a dated build, and then the longest pattern. Gemini's names may begin with models/.
func (c *modelPrices) find(model string) (p *Price, known bool) {
	if p, known = c.names[model]; known {
		return p, true
	}
	name := strings.TrimPrefix(strings.ToLower(model), "models/")
	if p, known = c.names[name]; known {
		return p, true
	}
	if p, known = c.names[Undated(name)]; known {
		return p, true
	}
	for _, x := range c.patterns {
		if x.matches(name) {
			return x.price, true
		}
	}
	return nil, false
}
