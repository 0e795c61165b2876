package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"
)

// byVendor names the provider of the data that holds a vendor's prices, by the vendor's row in
// provider/catalog. A vendor without a provider has no prices. A server of an unknown name is
// "generic": it may resell the closed models of three makers, and anybody may serve open ones.
var byVendor = map[string][]string{
	"openai": {"openai"}, "anthropic": {"anthropic"}, "generic": {"openai", "anthropic", "google"},
	"gemini": {"google"}, "google-openai": {"google"}, "vertex": {"google"},
	"vertex-express": {"google"}, "vertex-openai": {"google"}, "vertex-anthropic": {"google"},
	"azure": {"azure"}, "azure-ai": {"azure"}, "azure-deployments": {"azure"}, "azure-anthropic": {"azure"},
	"bedrock": {"aws"}, "bedrock-openai": {"aws"}, "bedrock-anthropic": {"aws"},
	"cohere": {"cohere"}, "cohere-v2": {"cohere"}, "mistral": {"mistral"}, "deepseek": {"deepseek"}, "xai": {"x-ai"}, "moonshot": {"moonshotai"},
	"perplexity": {"perplexity"}, "zai": {"zai"}, "openrouter": {"openrouter"}, "groq": {"groq"}, "together": {"together"},
	"fireworks": {"fireworks"}, "cerebras": {"cerebras"}, "novita": {"novita"},
}

// sources names each provider that a vendor needs, once.
func sources(asked map[string][]string) []string {
	var names []string
	for _, of := range asked {
		names = append(names, of...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// list is the file that headrace reads.
type list struct {
	source, license, day string
	vendors              map[string][]string // providers, the first that knows a model counts
	models               map[string][]model  // by provider
}

// model is one line of the list. A model without rates has no price in tokens.
type model struct {
	Match []string `json:"match"` // names, with * for any run of characters
	*rates
	Above []step `json:"above,omitempty"`
}

// rates are USD per million tokens.
type rates struct {
	Input  float64  `json:"input"`
	Output float64  `json:"output"`
	Cached *float64 `json:"cached,omitempty"`
	Write  *float64 `json:"cache_write,omitempty"`
}

// step holds the rates of a whole request whose prompt has more tokens.
type step struct {
	Tokens int64 `json:"tokens"`
	rates
}

// given is one provider of the data.
type given struct {
	ID       string   `json:"id"`
	Fallback []string `json:"fallback_model_providers"`
	Models   []struct {
		ID     string          `json:"id"`
		Match  match           `json:"match"`
		Prices json.RawMessage `json:"prices"`
	} `json:"models"`
}

// convert makes the list of the vendors that are asked for. It also names the match rules that a
// list has no form for.
func convert(rel release, asked map[string][]string, data []byte) (*list, []string, error) {
	var all []given
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, nil, fmt.Errorf("data of %s: %w", pack, err)
	}
	if rel.day.IsZero() || rel.license == "" {
		return nil, nil, fmt.Errorf("%s %s: its day or its licence is missing", pack, rel.version)
	}
	l := &list{
		source: pack + " " + rel.version, license: rel.license, day: rel.day.UTC().Format(time.DateOnly),
		vendors: map[string][]string{}, models: map[string][]model{},
	}
	fallback := map[string][]string{}
	var leftOut []string
	for _, g := range all {
		fallback[g.ID] = g.Fallback
		for _, m := range g.Models {
			names, odd := m.Match.names()
			for _, rule := range odd {
				leftOut = append(leftOut, g.ID+": "+m.ID+": "+rule)
			}
			made, err := priced(m.Prices, rel.day)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %s: %w", g.ID, m.ID, err)
			}
			if made.Match = names; len(names) > 0 {
				l.models[g.ID] = append(l.models[g.ID], made)
			}
		}
	}
	for _, name := range sources(asked) {
		if len(l.models[name]) == 0 {
			return nil, nil, fmt.Errorf("%s: provider %q has no models", pack, name)
		}
	}
	for vendor, of := range asked {
		for _, name := range slices.Concat(of, fallback[of[0]]) {
			if len(l.models[name]) > 0 && !slices.Contains(l.vendors[vendor], name) {
				l.vendors[vendor] = append(l.vendors[vendor], name)
			}
		}
	}
	return l, leftOut, nil
}

// match is a rule of the data: one of its fields is set.
type match struct {
	Or         []match `json:"or,omitempty"`
	And        []match `json:"and,omitempty"`
	Equals     string  `json:"equals,omitempty"`
	StartsWith string  `json:"starts_with,omitempty"`
	EndsWith   string  `json:"ends_with,omitempty"`
	Contains   string  `json:"contains,omitempty"`
	Regex      string  `json:"regex,omitempty"`
}

var (
	// dated rules find the builds of a model, which headrace finds by itself.
	dated = regexp.MustCompile(`^\^[^\\]*(\\\.[^\\]*)*-(\\d\{8\}|\\d\{4\}-\\d\{2\}-\\d\{2\})\$$`)
	// notSpeech is a rule that leaves out models of another name, which have rules of their own.
	notSpeech = `^(?!.*-[tT][tT][sS](?:$|-))`
)

// names returns the rule as names with *, each once, and the parts of it that have no such
// form.
func (m match) names() (names, odd []string) {
	switch {
	case m.Equals != "":
		names = []string{m.Equals}
	case m.StartsWith != "":
		names = []string{m.StartsWith + "*"}
	case m.EndsWith != "":
		names = []string{"*" + m.EndsWith}
	case m.Contains != "":
		names = []string{"*" + m.Contains + "*"}
	case len(m.And) == 2 && m.And[1].Regex == notSpeech:
		return m.And[0].names()
	case dated.MatchString(m.Regex):
	case len(m.Or) == 0:
		return nil, []string{line(m)}
	}
	for _, part := range m.Or {
		more, strange := part.names()
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		odd = append(odd, strange...)
	}
	return names, odd
}

// conditional is a price that holds from a day on, or between two times of each day.
type conditional struct {
	Constraint *struct {
		Type  string `json:"type"`
		Start string `json:"start_date"`
	} `json:"constraint"`
	Prices map[string]amount `json:"prices"`
}

// priced returns the rates that hold on a day. Of prices that change with the hour it takes
// the highest, so that no sum is too low.
func priced(raw json.RawMessage, day time.Time) (model, error) {
	if bytes.HasPrefix(raw, []byte("{")) {
		var plain map[string]amount
		if err := json.Unmarshal(raw, &plain); err != nil {
			return model{}, err
		}
		return rated(plain)
	}
	var all []conditional
	if err := json.Unmarshal(raw, &all); err != nil {
		return model{}, err
	}
	var best map[string]amount
	for _, c := range all {
		switch {
		case c.Constraint == nil:
			best = c.Prices
		case c.Constraint.Type == "start_date":
			from, err := time.Parse(time.DateOnly, c.Constraint.Start)
			if err != nil {
				return model{}, err
			}
			if !from.After(day) {
				best = c.Prices
			}
		case c.Constraint.Type != "time_of_date":
			return model{}, fmt.Errorf("constraint %q: want start_date or time_of_date", c.Constraint.Type)
		case c.Prices["input_mtok"].base > best["input_mtok"].base:
			best = c.Prices
		}
	}
	return rated(best)
}

// rated converts the data's prices per million tokens into rates. A model that is free, or
// that also charges by the request, gets none. So does a model that also writes sound or
// pictures: their tokens cost more, and no usage that headrace reads tells them apart.
func rated(p map[string]amount) (model, error) {
	if p[keys[0]].base == 0 {
		return model{}, nil
	}
	for key := range p {
		if key == "requests_kcount" || strings.HasPrefix(key, "output_") && key != keys[1] {
			return model{}, nil
		}
	}
	base := ratesAbove(p, -1)
	m := model{rates: &base}
	var starts []int64
	for _, key := range keys {
		for _, t := range p[key].tiers {
			if t.Start <= 0 {
				return model{}, fmt.Errorf("a step starts at %d tokens", t.Start)
			}
			starts = append(starts, t.Start)
		}
	}
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		m.Above = append(m.Above, step{start, ratesAbove(p, start)})
	}
	return m, nil
}

// keys are the data's names of the four rates.
var keys = [...]string{"input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok"}

// ratesAbove returns the rates of a prompt that is just longer than a start.
func ratesAbove(p map[string]amount, start int64) rates {
	r := rates{Input: p[keys[0]].above(start), Output: p[keys[1]].above(start)}
	for _, of := range []struct {
		key string
		to  **float64
	}{{keys[2], &r.Cached}, {keys[3], &r.Write}} {
		if a, ok := p[of.key]; ok {
			usd := a.above(start)
			*of.to = &usd
		}
	}
	return r
}

// amount is one price, which may rise in steps with the tokens of the prompt.
type amount struct {
	base  float64
	tiers []tier
}

type tier struct {
	Start int64   `json:"start"`
	Price float64 `json:"price"`
}

// UnmarshalJSON reads a number, or an object of a base and tiers.
func (a *amount) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &a.base) == nil {
		return nil
	}
	var stepped struct {
		Base  *float64 `json:"base"`
		Tiers []tier   `json:"tiers"`
	}
	if err := json.Unmarshal(text, &stepped); err != nil {
		return err
	}
	if stepped.Base == nil {
		return fmt.Errorf("price %s: want a number, or base and tiers", text)
	}
	a.base, a.tiers = *stepped.Base, stepped.Tiers
	sort.Slice(a.tiers, func(i, j int) bool { return a.tiers[i].Start < a.tiers[j].Start })
	return nil
}

// above returns the price of a prompt that is just longer than a start.
func (a amount) above(start int64) float64 {
	usd := a.base
	for _, t := range a.tiers {
		if t.Start <= start {
			usd = t.Price
		}
	}
	return usd
}

// text returns the file: a model to a line, so that a refresh shows only changed lines.
func (l *list) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n\"source\": %s,\n\"as_of\": %s,\n\"license\": %s,\n\"vendors\": {", line(l.source), line(l.day), line(l.license))
	for i, name := range sortedKeys(l.vendors) {
		fmt.Fprintf(&b, "%s\n%s: %s", comma(i), line(name), line(l.vendors[name]))
	}
	b.WriteString("\n},\n\"models\": {")
	for i, name := range sortedKeys(l.models) {
		fmt.Fprintf(&b, "%s\n%s: [", comma(i), line(name))
		for j, m := range l.models[name] {
			fmt.Fprintf(&b, "%s\n%s", comma(j), line(m))
		}
		b.WriteString("\n]")
	}
	b.WriteString("\n}\n}\n")
	return b.Bytes()
}

func comma(i int) string { return strings.Repeat(",", min(i, 1)) }

func sortedKeys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// line returns a value as JSON, in one line.
func line(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // names and numbers cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
