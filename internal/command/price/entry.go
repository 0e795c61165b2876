package price

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/provider"
)

// entry is a price as a file writes it. A missing part is not known.
type entry struct {
	scheduled
	When []when `json:"when,omitempty"`
}

// scheduled is a Schedule as a file writes it.
type scheduled struct {
	rates
	Above []above `json:"above,omitempty"`
}

// rates are Rates as a file writes them.
type rates struct {
	Input     *float64 `json:"input,omitempty"`
	Output    *float64 `json:"output,omitempty"`
	Cached    *float64 `json:"cached,omitempty"`
	Write     *float64 `json:"cache_write,omitempty"`
	LongWrite *float64 `json:"cache_write_1h,omitempty"`
}

// above is a Step as a file writes it.
type above struct {
	Tokens int64 `json:"tokens"`
	rates
}

// when is a Case as a file writes it.
type when struct {
	From  string   `json:"from,omitempty"`
	Until string   `json:"until,omitempty"`
	Hours string   `json:"hours,omitempty"`
	Tier  string   `json:"tier,omitempty"`
	Times *float64 `json:"times,omitempty"`
	scheduled
}

// toPrice returns the price, or an error if the entry is invalid.
func (e entry) toPrice() (p Price, err error) {
	if p.Schedule, err = e.toSchedule(); err != nil {
		return p, err
	}
	for _, w := range e.When {
		c, err := w.toCase()
		if err != nil {
			return p, fmt.Errorf("when: %w", err)
		}
		p.When = append(p.When, c)
	}
	return p, nil
}

// toSchedule returns the schedule, or an error if its steps do not rise.
func (s scheduled) toSchedule() (out Schedule, err error) {
	if out.Rates, err = s.toRates(); err != nil {
		return out, err
	}
	last := int64(0)
	for _, step := range s.Above {
		r, err := step.toRates()
		if err == nil && step.Tokens <= last {
			err = fmt.Errorf("tokens of %d: want more than %d", step.Tokens, last)
		}
		if err != nil {
			return out, fmt.Errorf("above: %w", err)
		}
		last, out.Above = step.Tokens, append(out.Above, Step{step.Tokens, r})
	}
	return out, nil
}

// toRates returns the rates, or an error. Input and output must be there, as a missing rate would count as 0.
// A missing rate of a cache is that of input, since such tokens count as input. An hour's cache has the rate
// of any other cache.
func (r rates) toRates() (out Rates, err error) {
	if r.Input == nil || r.Output == nil {
		return out, errors.New("its input or output is missing: write 0 for free")
	}
	out = Rates{Input: *r.Input, Output: *r.Output, Cached: *r.Input, Write: *r.Input}
	if r.Cached != nil {
		out.Cached = *r.Cached
	}
	if r.Write != nil {
		out.Write = *r.Write
	}
	if out.LongWrite = out.Write; r.LongWrite != nil {
		out.LongWrite = *r.LongWrite
	}
	for _, usd := range [...]float64{out.Input, out.Output, out.Cached, out.Write, out.LongWrite} {
		if !isPrice(usd) {
			return out, errRates
		}
	}
	return out, nil
}

// mostTimes is the highest factor that is believed: the dearest tier of 2026 costs 6 times the
// standard one.
const mostTimes = 100

// toCase returns the case, or an error. A case has a condition, and either rates of its own or a factor.
func (w when) toCase() (out Case, err error) {
	if w.From == "" && w.Until == "" && w.Hours == "" && w.Tier == "" {
		return out, errors.New("it has no condition: write from, until, hours or tier")
	}
	if out.From, err = dayOf("from", w.From); err != nil {
		return out, err
	}
	if out.Until, err = dayOf("until", w.Until); err != nil {
		return out, err
	}
	if out.Begin, out.End, err = hoursOf(w.Hours); err != nil {
		return out, err
	}
	if w.Tier != "" {
		for _, t := range [...]provider.Tier{provider.FlexTier, provider.PriorityTier, provider.BatchTier} {
			if w.Tier == t.String() {
				out.Tier = t
			}
		}
		if out.Tier == provider.StandardTier {
			return out, fmt.Errorf("tier %q: want flex, priority or batch", w.Tier)
		}
	}
	if w.Times == nil {
		out.Times = ownRates
		out.Schedule, err = w.toSchedule()
		return out, err
	}
	out.Times = *w.Times
	switch {
	case out.Tier == provider.StandardTier || w.Input != nil || w.Output != nil:
		return out, errors.New("times: it is for a tier, without rates of its own")
	case !(out.Times >= 0 && out.Times <= mostTimes):
		return out, fmt.Errorf("times of %v: want a number from 0 to %d", out.Times, mostTimes)
	}
	return out, nil
}

// dayOf parses a day in UTC; "" is the zero time.
func dayOf(name, text string) (t time.Time, err error) {
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.DateOnly, text); err != nil {
		return t, fmt.Errorf("%s %q: want a day such as 2026-12-31", name, text)
	}
	return t, nil
}

// hoursOf parses two times of the day, such as 01:00-04:00; "" is all day.
func hoursOf(text string) (begin, end time.Duration, err error) {
	if text == "" {
		return 0, 0, nil
	}
	const clock = "15:04"
	first, second, _ := strings.Cut(text, "-")
	from, err := time.Parse(clock, first)
	if err == nil {
		var until time.Time
		if until, err = time.Parse(clock, second); err == nil && !from.Equal(until) {
			midnight := from.Truncate(day)
			return from.Sub(midnight), until.Sub(midnight), nil
		}
	}
	return 0, 0, fmt.Errorf("hours %q: want two times of the day in UTC, such as 01:00-04:00", text)
}
