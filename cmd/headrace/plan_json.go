package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/headrace/headrace/cmd/headrace/internal/printable"
	"github.com/headrace/headrace/limiter"
)

// planJSON is the plan for scripts. Its names are a promise.
type planJSON struct {
	Lines       int             `json:"lines"`
	Items       int             `json:"items"`
	Models      []planModelJSON `json:"models"`
	InputTokens int64           `json:"input_tokens"`
	Output      int64           `json:"output_tokens"`
	CostUSD     *float64        `json:"cost_usd"` // null: of some model it is not known
	PricesAsOf  string          `json:"prices_as_of"`
	Preset      string          `json:"preset"`
	Seconds     float64         `json:"seconds"`
	Bound       string          `json:"bound"` // "": nothing is
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

func (s *scheme) printJSON() error {
	p := planJSON{
		Lines: s.lines, Items: s.items, Models: []planModelJSON{}, PricesAsOf: builtIn().AsOf, Preset: s.preset.Name,
		Seconds: s.forecast.Took.Seconds(), Limits: []planLimitJSON{}, TooLarge: s.tooLarge(),
		Scaled: s.forecast.Scaled, Assumed: s.assumed, Notes: []string{},
	}
	for i, m := range s.models {
		p.Models = append(p.Models, planModelJSON{
			Model: m.name, Items: m.items, Input: whole(m.input), Output: whole(m.output),
			CostUSD: orNull(s.cost(m)), Seconds: s.forecast.Lanes[i].Took.Seconds(),
		})
		p.InputTokens, p.Output = p.InputTokens+whole(m.input), p.Output+whole(m.output)
	}
	usd, unknown := s.sum()
	p.CostUSD = orNull(usd, unknown == 0)
	for _, x := range s.whatIfs {
		p.Limits = append(p.Limits, planLimitJSON{limitName(x.on), s.used(x.on), x.halved.Seconds(), x.double.Seconds()})
	}
	if d, ok := s.binding(); ok {
		p.Bound = limitName(d)
	}
	if s.items > 0 {
		p.Notes = s.notes()
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(p)
	if err == nil {
		_, err = s.stdout.Write(printable.JSON(text.Bytes()))
	}
	if err != nil {
		return &ending{code: exitOutput, text: fmt.Sprintf("%v: the plan cannot be written", err)}
	}
	return nil
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
	usd = math.Round(usd*1e6) / 1e6
	return &usd
}
