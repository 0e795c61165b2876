package plan

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"

	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/limiter"
)

// planJSON is the plan for scripts. Its names are a promise.
type planJSON struct {
	Lines       int             `json:"lines"`
	Items       int             `json:"items"`
	BadLines    int             `json:"bad_lines"`                      // left out
	Foreign     int             `json:"untranslatable_lines,omitempty"` // likewise
	Models      []planModelJSON `json:"models"`
	InputTokens int64           `json:"input_tokens"`
	Output      int64           `json:"output_tokens"`
	CostUSD     *float64        `json:"cost_usd"` // null: it is not known for some model
	PricesAsOf  string          `json:"prices_as_of"`
	Preset      string          `json:"preset"`
	Tier        string          `json:"tier"`         // "": none
	LimitsAsOf  string          `json:"limits_as_of"` // of the tier; "": there is none
	Seconds     float64         `json:"seconds"`
	Bound       string          `json:"bound"` // "": nothing binds
	Limits      []planLimitJSON `json:"limits"`
	TooLarge    int             `json:"too_large"`
	Scaled      bool            `json:"scaled"`
	Assumed     int             `json:"output_assumed"`
	Notes       []string        `json:"notes"`
}

type planModelJSON struct {
	Model   string   `json:"model"`
	Items   int      `json:"items"`
	Input   int64    `json:"input_tokens"`
	Output  int64    `json:"output_tokens"`
	CostUSD *float64 `json:"cost_usd"`
	Seconds float64  `json:"seconds"`
}

type planLimitJSON struct {
	Limit   string  `json:"limit"`
	InUse   float64 `json:"in_use"`
	Halved  float64 `json:"seconds_if_halved"`
	Doubled float64 `json:"seconds_if_doubled"`
}

// JSON writes the plan for programs, as one object. The error is that of the write.
func (p *Plan) JSON(out io.Writer) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p.picture()); err != nil {
		return err
	}
	_, err := out.Write(printable.JSON(text.Bytes()))
	return err
}

func (p *Plan) picture() planJSON {
	t := planJSON{
		Lines: p.lines, Items: p.items, BadLines: p.bad, Foreign: p.foreign, Models: []planModelJSON{}, PricesAsOf: price.AsOf(), Preset: p.cfg.Counts,
		Tier: p.cfg.Tier.Name, LimitsAsOf: p.cfg.Tier.AsOf,
		Seconds: p.forecast.Took.Seconds(), Limits: []planLimitJSON{}, TooLarge: p.tooLarge(),
		Scaled: p.forecast.Scaled, Assumed: p.assumed, Notes: []string{},
	}
	for _, m := range p.models {
		t.Models = append(t.Models, planModelJSON{
			Model: m.name, Items: m.items, Input: whole(m.input), Output: whole(m.output),
			CostUSD: orNull(m.cost()), Seconds: p.forecast.Lanes[m.quota].Took.Seconds(),
		})
		t.InputTokens, t.Output = t.InputTokens+whole(m.input), t.Output+whole(m.output)
	}
	usd, unknown := p.sum()
	t.CostUSD = orNull(usd, unknown == 0)
	for _, x := range p.whatIfs {
		t.Limits = append(t.Limits, planLimitJSON{limitName(x.on), p.used(x.on), x.halved.Seconds(), x.double.Seconds()})
	}
	if d, ok := p.binding(); ok {
		t.Bound = limitName(d)
	}
	if p.items > 0 {
		t.Notes = p.notes()
	}
	return t
}

func limitName(d limiter.Dimension) string {
	if d == limiter.None {
		return "concurrency"
	}
	return strings.ReplaceAll(d.String(), " ", "_")
}

func whole(x float64) int64 { return int64(math.Round(min(x, 1e18))) }

func orNull(usd float64, known bool) *float64 {
	if !known {
		return nil
	}
	usd = price.Tidy(usd)
	return &usd
}
