package price

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Genai is one provider of the data of genai-prices.
type Genai struct {
	ID       string   `json:"id"`
	Fallback []string `json:"fallback_model_providers"`
	Models   []struct {
		ID     string          `json:"id"`
		Match  match           `json:"match"`
		Prices json.RawMessage `json:"prices"`
	} `json:"models"`
}

// List converts the provider's models. It also returns the match rules that have no form here. Their models
// are left out unless another rule finds them.
func (g *Genai) List() (models []Listed, leftOut []string, err error) {
	for _, model := range g.Models {
		names, unsupported := model.Match.names()
		for _, rule := range unsupported {
			leftOut = append(leftOut, g.ID+": "+model.ID+": "+rule)
		}
		e, err := genaiEntry(model.Prices)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", g.ID, model.ID, err)
		}
		if len(names) > 0 {
			models = append(models, Listed{Match: names, entry: e})
		}
	}
	return models, leftOut, nil
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
	// datedRule rules find the builds of a model, which headrace finds by itself.
	datedRule = regexp.MustCompile(`^\^[^\\]*(\\\.[^\\]*)*-(\\d\{8\}|\\d\{4\}-\\d\{2\}-\\d\{2\})\$$`)
	// notSpeech is a rule that leaves out models of another name, which have rules of their own.
	notSpeech = `^(?!.*-[tT][tT][sS](?:$|-))`
)

// names returns the rule as names with *, each once, and the parts of it that have no such form.
func (m match) names() (names, unsupported []string) {
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
	case datedRule.MatchString(m.Regex):
	case len(m.Or) == 0:
		return nil, []string{m.String()}
	}
	for _, part := range m.Or {
		more, moreUnsupported := part.names()
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		unsupported = append(unsupported, moreUnsupported...)
	}
	return names, unsupported
}

// String returns the rule as JSON.
func (m match) String() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(m) // names cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// conditional is a price that holds from a day on, or between two times of each day.
type conditional struct {
	Constraint *struct {
		Type      string `json:"type"`
		Start     string `json:"start_date"`
		StartTime string `json:"start_time"`
		EndTime   string `json:"end_time"`
	} `json:"constraint"`
	Prices map[string]amount `json:"prices"`
}

// genaiEntry converts the prices of a model. A model gets none if it is free, or if it is at any time not
// priced by tokens of text alone.
func genaiEntry(raw json.RawMessage) (converted entry, err error) {
	prices := make([]conditional, 1)
	if bytes.HasPrefix(raw, []byte("{")) {
		err = json.Unmarshal(raw, &prices[0].Prices)
	} else {
		err = json.Unmarshal(raw, &prices)
	}
	if err != nil {
		return converted, err
	}
	for i, c := range prices {
		s, paid, err := scheduleFrom(c.Prices)
		if err != nil || !paid {
			return entry{}, err
		}
		condition := when{scheduled: s}
		switch {
		case c.Constraint == nil && i == 0:
			converted.scheduled = s
			continue
		case c.Constraint == nil:
			return entry{}, fmt.Errorf("price %d has no constraint: want one", i+1)
		case c.Constraint.Type == "start_date":
			condition.From = c.Constraint.Start
		case c.Constraint.Type == "time_of_date":
			condition.Hours = withoutSeconds(c.Constraint.StartTime) + "-" + withoutSeconds(c.Constraint.EndTime)
		default:
			return entry{}, fmt.Errorf("constraint %q: want start_date or time_of_date", c.Constraint.Type)
		}
		if converted.Input == nil { // no price holds before the first constraint
			return entry{}, nil
		}
		if _, err := condition.toCase(); err != nil {
			return entry{}, err
		}
		converted.When = append(converted.When, condition)
	}
	return converted, nil
}

// withoutSeconds returns a time of the day without its seconds and zone, as 00:30 for 00:30:00Z.
func withoutSeconds(clock string) string { return clock[:min(len(clock), len("00:30"))] }

// scheduleFrom converts prices per million tokens into a schedule. It is false for a model that is free or
// also priced by the request. It is also false for one that writes sound or pictures. Those tokens cost more,
// and no usage that headrace reads tells them apart.
func scheduleFrom(amounts map[string]amount) (schedule scheduled, paid bool, err error) {
	if amounts[genaiKeys[0]].base == 0 {
		return schedule, false, nil
	}
	for key := range amounts {
		if key == "requests_kcount" || strings.HasPrefix(key, "output_") && key != genaiKeys[1] {
			return schedule, false, nil
		}
	}
	schedule.rates = ratesAbove(amounts, -1)
	var starts []int64
	for _, key := range genaiKeys {
		for _, t := range amounts[key].tiers {
			if t.Start <= 0 {
				return schedule, false, fmt.Errorf("a step starts at %d tokens", t.Start)
			}
			starts = append(starts, t.Start)
		}
	}
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		schedule.Above = append(schedule.Above, above{start, ratesAbove(amounts, start)})
	}
	return schedule, true, nil
}

// genaiKeys are the data's names of the rates.
var genaiKeys = [...]string{"input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok"}

// ratesAbove returns the rates for a prompt that is just longer than start tokens.
func ratesAbove(amounts map[string]amount, start int64) (r rates) {
	input, output := amounts[genaiKeys[0]].above(start), amounts[genaiKeys[1]].above(start)
	r.Input, r.Output = &input, &output
	for i, target := range []**float64{&r.Cached, &r.Write, &r.LongWrite} {
		if a, ok := amounts[genaiKeys[i+2]]; ok {
			usd := a.above(start)
			*target = &usd
		}
	}
	return r
}

// amount is one price, which may rise in steps with the tokens of the prompt.
type amount struct {
	base  float64
	tiers []amountStep
}

type amountStep struct {
	Start int64   `json:"start"`
	Price float64 `json:"price"`
}

// UnmarshalJSON reads a number, or an object with a base and tiers.
func (a *amount) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &a.base) == nil {
		return nil
	}
	var stepped struct {
		Base  *float64     `json:"base"`
		Tiers []amountStep `json:"tiers"`
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

// above returns the price for a prompt that is just longer than start tokens.
func (a amount) above(start int64) float64 {
	usd := a.base
	for _, t := range a.tiers {
		if t.Start <= start {
			usd = t.Price
		}
	}
	return usd
}

// tidy removes what arithmetic with fractions adds to a rate, so that it reads as it would by
// hand: 0.3 and not 0.30000000000000004.
func tidy(rate float64) float64 {
	const fine = 1e9
	return math.Round(rate*fine) / fine
}
