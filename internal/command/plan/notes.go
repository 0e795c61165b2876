package plan

import (
	_ "embed" // for the tiers
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
)

// printNotes says what the figures are based on.
func (p *Plan) printNotes(out io.Writer) {
	fmt.Fprintln(out)
	for _, note := range p.notes() {
		fmt.Fprintf(out, "- %s\n", note)
	}
}

// notes lists what the figures rest on, and why a run may differ from them.
func (p *Plan) notes() []string {
	notes := []string{
		"tokens in are estimated from the text: give or take 15 % (" + p.chargeRule() + ")",
		p.outputNote(),
		p.latencyNote(),
	}
	if n := p.tooLong; n > 0 {
		notes = append(notes, fmt.Sprintf("%s taken to last longer than a call may, %s: run would break them off (--timeout)", isAre(n, "call"), durationText(p.cfg.Timeout)))
	}
	if deadline := p.cfg.Deadline; deadline > 0 && deadline < p.forecast.Took {
		notes = append(notes, "run would stop after "+durationText(deadline)+", with items left (--deadline)")
	}
	if n := p.tooLarge(); n > 0 {
		notes = append(notes, fmt.Sprintf("%s larger than a minute's limit on tokens: the provider would refuse them", p.atLeast(isAre(n, "item"))))
	}
	if free := p.unlimitedNames(); free != "" {
		ways := "--rpm, --tpm, --tier"
		if p.cfg.Routes != nil {
			ways = "rpm and tpm of a lane, --tier"
		}
		notes = append(notes, "no limit is given for "+free+": a run learns it, and may take longer ("+ways+")")
	}
	if tier := p.cfg.Tier; tier.Name != "" {
		notes = append(notes, "limits of "+tier.Name+" as collected on "+tier.AsOf+": see your account's own")
	}
	if p.rampsUp() {
		notes = append(notes, fmt.Sprintf("above %s input tokens a minute OpenAI lets traffic grow by half in 15 minutes: it may take longer", words.Thousands(rampFrom)))
	}
	if p.cfg.Checked {
		notes = append(notes, "items whose answers do not fit the schema are asked again: up to a tenth more calls, and as much more time and cost")
	}
	notes = append(notes, p.priceNote())
	if p.forecast.Scaled {
		notes = append(notes, "the time is that of a sample of the items, scaled")
	}
	return notes
}

// chargeRule says by which rule calls draw on limits.
func (p *Plan) chargeRule() string {
	if p.cfg.Routes != nil {
		return "charged as by the provider of each lane"
	}
	return "charged as by " + p.cfg.Counts + ": --preset"
}

// atLeast marks a count as a lower bound if it comes from a sample only.
func (p *Plan) atLeast(text string) string {
	if p.forecast.Scaled {
		return "at least " + text
	}
	return text
}

// outputNote describes how long answers are assumed to be.
func (p *Plan) outputNote() string {
	text := "an answer is taken to be as long as its line allows"
	if p.cfg.Pilot != nil {
		answers, tokens := 0, 0.0
		for _, shown := range p.cfg.Pilot {
			answers, tokens = answers+shown.Answers, tokens+shown.Output*float64(shown.Answers)
		}
		text = fmt.Sprintf("an answer is taken to be as long as those of the pilot: %s tokens, the mean of %s",
			words.Thousands(tokens/float64(max(1, answers))), words.Count(answers, "answer"))
	}
	if p.assumed > 0 {
		text += fmt.Sprintf("; %s nothing: %s tokens (--output-tokens)", verbForLines(p.assumed), words.Thousands(p.cfg.Output))
	}
	return text
}

func verbForLines(n int) string {
	if n == 1 {
		return "1 line says"
	}
	return words.Thousands(float64(n)) + " lines say"
}

func isAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return words.Thousands(float64(n)) + " " + noun + "s are"
}

// latencyNote describes how long calls are assumed to last.
func (p *Plan) latencyNote() string {
	mean := durationText(time.Duration(min(p.latency/float64(p.items), longestCall.Seconds()) * 1e9))
	if p.cfg.Pilot != nil {
		return "a call is taken to last " + mean + ", as those of the pilot did in the median"
	}
	if p.cfg.Latency > 0 {
		return "a call is taken to last " + mean + " in the median (--latency)"
	}
	return "a call is taken to last 0.5 s and 20 ms for each token out, here " + mean + " on average (--latency)"
}

// unlimitedNames returns the names of models and lanes that have no known limit, a few of them.
func (p *Plan) unlimitedNames() string {
	var names []string
	for _, m := range p.models {
		if m.route == nil && m.limits.Zero() {
			names = append(names, shortName(m.name))
		}
	}
	for i, name := range p.laneNames {
		if p.quotas[i].Zero() {
			names = append(names, shortName(name))
		}
	}
	const most = 5
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// rampFrom is the number of input tokens a minute that OpenAI takes from a new user. It
// refuses traffic that grows from there by more than half in 15 minutes (slow_down), within
// all limits.
const rampFrom = 1e6

// rampsUp reports whether a model gets more input tokens than rampFrom in some minute.
func (p *Plan) rampsUp() bool {
	for _, m := range p.models {
		if p.cfg.Ramps && m.route == nil && m.input/max(1, p.forecast.Lanes[m.quota].Took.Minutes()) > rampFrom {
			return true
		}
	}
	return false
}

// priceNote describes where the prices come from, and how to set unknown ones. It names the built-in list as
// soon as one price comes from it.
func (p *Plan) priceNote() string {
	dated, unknown := false, false
	for _, m := range p.models {
		dated, unknown = dated || m.dated, unknown || m.unpriced > 0
	}
	text := "prices are yours"
	if dated {
		text = "list prices as collected on " + price.AsOf() + " (" + price.Source() + "): see your provider's page"
		if old := price.Old(p.cfg.At); old != "" {
			text += "; " + old
		}
	}
	if unknown {
		way := "--price"
		if p.cfg.Routes != nil {
			way = "price in the lanes"
		}
		text = strings.TrimPrefix(text+"; ", "prices are yours; ") + "unknown prices can be set with " + way + " or --prices"
	}
	return text
}

//go:embed tiers.json
var tiersJSON []byte

// builtIn returns the tiers of this build. A test makes sure that they parse.
func builtIn() []Tier {
	var t struct {
		Tiers []Tier `json:"tiers"`
	}
	if err := json.Unmarshal(tiersJSON, &t); err != nil {
		panic(err)
	}
	return t.Tiers
}

// Tier holds the limits of an account. The zero value has no limits.
type Tier struct {
	Name   string                    `json:"name"`
	AsOf   string                    `json:"as_of"`  // the day on which its provider's pages said so
	Limits map[string]limiter.Limits `json:"limits"` // by model, for models with a published one
}

// limitsOf returns the limits of a model; a dated build has those of its model.
func (t Tier) limitsOf(model string) limiter.Limits {
	if l, ok := t.Limits[model]; ok {
		return l
	}
	return t.Limits[price.Undated(model)]
}

// TierNames lists the known tiers, those of one provider from the lowest.
func TierNames() string {
	var names []string
	for _, t := range builtIn() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// numbered matches the tiers that OpenAI had until 2026-10-06.
var numbered = regexp.MustCompile(`^openai-[1-5]$`)

// TierOf finds a tier by its name, in upper or lower case; "" is no tier. The error lists the known ones.
func TierOf(name string) (Tier, error) {
	lower := strings.ToLower(name)
	for _, t := range builtIn() {
		if t.Name == lower {
			return t, nil
		}
	}
	switch {
	case name == "":
		return Tier{}, nil
	case numbered.MatchString(lower):
		return Tier{}, fmt.Errorf("--tier: %q no longer exists: on 2026-10-06 OpenAI replaced its five tiers: use openai-build, "+
			"openai-launch or openai-grow, for accounts that have bought $5, $100 or $500 of credit", name)
	}
	return Tier{}, fmt.Errorf("--tier: %q is not known: use %s, or set limits with --rpm and --tpm", name, TierNames())
}
