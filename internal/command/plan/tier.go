package plan

import (
	_ "embed" // for the tiers
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/limiter"
)

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

// of returns the limits of a model; a dated build has those of its model.
func (t Tier) of(model string) limiter.Limits {
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

// TierOf finds a tier by its name, in upper or lower case; "" is no tier. The error lists
// the known ones.
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
