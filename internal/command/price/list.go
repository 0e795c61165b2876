package price

import (
	_ "embed" // for the list
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/headrace/headrace/provider"
)

//go:embed list.json
var listJSON []byte

// builtIn is the list of this build, which internal/command/price/refresh wrote. A test reads
// all of it, so that it parses.
type builtIn struct {
	Source  string              `json:"source"` // the package that the data come from, and its version
	AsOf    string              `json:"as_of"`  // the day of that version
	Vendors map[string][]string `json:"vendors"`
	// Tiers are the factors that a source asks for its tiers, where all of its models have the
	// same.
	Tiers  map[string]map[string]float64 `json:"tiers"`
	Models map[string]json.RawMessage    `json:"models"` // of each source
}

// list reads the frame of the list once. The models stay raw until a vendor needs them.
var list = sync.OnceValue(func() *builtIn {
	l := new(builtIn)
	must(json.Unmarshal(listJSON, l))
	return l
})

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

// Vendors returns the names of the vendors that the list has prices of.
func Vendors() []string { return slices.Sorted(maps.Keys(list().Vendors)) }

// pricesFor returns a vendor's prices for its models; nil: they are not known.
func (l *builtIn) pricesFor(vendor string) []modelPrices {
	var all []modelPrices
	for _, source := range l.Vendors[vendor] {
		all = append(all, l.pricesOfSource(source))
	}
	return all
}

// pricesOfSource returns the prices of a source.
func (l *builtIn) pricesOfSource(source string) modelPrices {
	var models []Listed
	must(json.Unmarshal(l.Models[source], &models))
	return modelPricesOf(models, l.Tiers[source])
}

// Listed is a model of a list, with its names. A * in a name stands for any run of
// characters. Without an input it has no price in tokens.
type Listed struct {
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

// modelPricesOf prepares a source's list for find. A model without a price in tokens is known, and has none.
func modelPricesOf(models []Listed, tiers map[string]float64) modelPrices {
	prices := modelPrices{names: make(map[string]*Price, len(models))}
	for i := range models {
		model := &models[i]
		var price *Price
		if model.Input != nil {
			if parsed, err := model.toPrice(); err == nil { // a test makes sure of it for the built-in list
				parsed.addTiers(tiers)
				price = &parsed
			}
		}
		for _, name := range model.Match {
			prices.add(name, price)
		}
	}
	slices.SortStableFunc(prices.patterns, func(a, b pattern) int {
		return len(b.start) + len(b.middle) + len(b.end) - len(a.start) - len(a.middle) - len(a.end)
	})
	return prices
}

// addTiers adds the factors that a source asks for its tiers, unless the price has its own for that tier.
func (p *Price) addTiers(tiers map[string]float64) {
	for _, tier := range [...]provider.Tier{provider.FlexTier, provider.PriorityTier, provider.BatchTier} {
		isSet := slices.ContainsFunc(p.When, func(c Case) bool { return c.Tier == tier })
		if times, ok := tiers[tier.String()]; ok && !isSet {
			p.When = append(p.When, Case{Tier: tier, Times: times})
		}
	}
}

// add adds a name or a pattern of a model. If two models share a name, the first one has it.
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

// find looks up a model by its name, in upper or lower case. Then it tries the name without a date, and then
// the longest pattern. Gemini's names may begin with models/.
func (c *modelPrices) find(model string) (found *Price, known bool) {
	if found, known = c.names[model]; known {
		return found, true
	}
	name := strings.TrimPrefix(strings.ToLower(model), "models/")
	if found, known = c.names[name]; known {
		return found, true
	}
	if found, known = c.names[Undated(name)]; known {
		return found, true
	}
	for _, candidate := range c.patterns {
		if candidate.matches(name) {
			return candidate.price, true
		}
	}
	return nil, false
}

// Undated returns a model's name without the date of its build: gpt-4o for gpt-4o-2024-08-06, claude-sonnet-4
// for claude-sonnet-4-20250514.
func Undated(model string) string {
	for _, date := range [...]string{"-20dd-dd-dd", "-20dddddd"} {
		if start := len(model) - len(date); start >= 0 && isDate(model[start:], date) {
			return model[:start]
		}
	}
	return model
}

// isDate reports whether s matches the pattern date, in which d is any digit. Both must have the same length.
func isDate(s, date string) bool {
	for i := range len(s) {
		if date[i] != s[i] && (date[i] != 'd' || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}
