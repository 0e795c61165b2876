package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/price"
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

// tiers are the factors of a maker whose models all have the same. A tier without one has no
// known price: the factors of OpenAI's priority are between 1.7 and 2.5.
//
//   - OpenAI's flex costs as much as its batches, which cost half:
//     https://developers.openai.com/api/docs/guides/flex-processing
//   - Groq's flex costs as much as any other: https://console.groq.com/docs/flex-processing
//   - Google's flex and batches cost half: https://ai.google.dev/gemini-api/docs/flex-inference
//   - Anthropic's batches cost half: https://platform.claude.com/docs/en/build-with-claude/batch-processing
var tiers = map[string]map[string]float64{
	"openai": {"batch": 0.5, "flex": 0.5}, "groq": {"flex": 1}, "anthropic": {"batch": 0.5}, "google": {"batch": 0.5, "flex": 0.5},
}

// list is the file that headrace reads.
type list struct {
	source, license, day string
	vendors              map[string][]string       // providers, the first that knows a model counts
	models               map[string][]price.Listed // by provider
}

// convert makes the list of the vendors that are asked for, from the data of a release. asked names the providers of
// each vendor, the first that knows a model counts; after them come the providers to which the first one falls back,
// as far as they have models. convert also names the match rules that a list has no form for.
func convert(rel release, asked map[string][]string, data []byte) (*list, []string, error) {
	var all []price.Genai
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, nil, fmt.Errorf("data of %s: %w", pack, err)
	}
	if rel.day.IsZero() || rel.license == "" {
		return nil, nil, fmt.Errorf("%s %s: its day or its licence is missing", pack, rel.version)
	}
	l := &list{
		source: pack + " " + rel.version, license: rel.license, day: rel.day.UTC().Format(time.DateOnly),
		vendors: map[string][]string{}, models: map[string][]price.Listed{},
	}
	fallback := map[string][]string{}
	var leftOut []string
	for _, g := range all {
		fallback[g.ID] = g.Fallback
		models, odd, err := g.List()
		if err != nil {
			return nil, nil, err
		}
		l.models[g.ID], leftOut = models, append(leftOut, odd...)
	}
	for _, name := range sources(asked) {
		if len(l.models[name]) == 0 {
			return nil, nil, fmt.Errorf("%s: provider %q has no models", pack, name)
		}
	}
	for vendor, providers := range asked {
		for _, name := range slices.Concat(providers, fallback[providers[0]]) {
			if len(l.models[name]) > 0 && !slices.Contains(l.vendors[vendor], name) {
				l.vendors[vendor] = append(l.vendors[vendor], name)
			}
		}
	}
	return l, leftOut, nil
}

// text returns the file: a model to a line, so that a refresh shows only changed lines.
func (l *list) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n\"source\": %s,\n\"as_of\": %s,\n\"license\": %s,\n\"vendors\": {", line(l.source), line(l.day), line(l.license))
	for i, name := range sortedKeys(l.vendors) {
		fmt.Fprintf(&b, "%s\n%s: %s", comma(i), line(name), line(l.vendors[name]))
	}
	b.WriteString("\n},\n\"tiers\": {")
	made := 0
	for _, name := range sortedKeys(l.models) {
		if of := tiers[name]; of != nil {
			fmt.Fprintf(&b, "%s\n%s: %s", comma(made), line(name), line(of))
			made++
		}
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
