package price

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

// mostFile bounds a file of prices, in bytes. The largest that is known, litellm's, has two
// million.
const mostFile = 64 << 20

// fileModels are the models of a file of prices.
type fileModels struct {
	own       []Listed            // in our own form
	providers []string            // of genai-prices or litellm, in the order of the file
	models    map[string][]Listed // by provider
	litellm   bool
}

// pricesFor returns the file's prices for a vendor, by source; nil if it has none.
func (f *fileModels) pricesFor(vendor string, builtInList *builtIn) []modelPrices {
	if f == nil {
		return nil
	}
	if f.own != nil {
		return []modelPrices{modelPricesOf(f.own, nil)}
	}
	names := builtInList.Vendors[vendor] // as genai-prices calls them
	switch {
	case f.litellm:
		names = litellmNames(vendor, names)
	case len(names) == 0 && f.models[vendor] != nil:
		names = []string{vendor}
	case len(names) == 0: // a server of one's own: the user says that the file is for it
		names = f.providers
	}
	var prices []modelPrices
	for _, name := range names {
		if models := f.models[name]; models != nil {
			prices = append(prices, modelPricesOf(models, builtInList.Tiers[name]))
		}
	}
	return prices
}

// add adds a model of a provider.
func (f *fileModels) add(provider string, m Listed) {
	if f.models == nil {
		f.models = map[string][]Listed{}
	}
	if f.models[provider] == nil {
		f.providers = append(f.providers, provider)
	}
	f.models[provider] = append(f.models[provider], m)
}

const fileHelp = `write {"model":{"input":2.5,"output":10}}, in USD per million tokens, or give the data.json of genai-prices or the model_prices_and_context_window.json of litellm; ` +
	`cached input and cache writes may have prices of their own, "cached":1.25 and "cache_write":3, and a long prompt its own prices, "above":[{"tokens":200000,"input":5,"output":20}]`

// readFile reads a file of prices. Its form shows in its first part. Only one part of the file is in memory
// at a time.
func readFile(name string) (*fileModels, error) {
	in, err := os.Open(name) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("--prices: %w: check the name of the file", err)
	}
	defer func() { _ = in.Close() }()
	return readModels(name, in)
}

// readModels reads the text of a file of prices. The name is for its errors.
func readModels(name string, in io.Reader) (*fileModels, error) {
	bounded := &io.LimitedReader{R: in, N: mostFile}
	f := new(fileModels)
	err := f.read(json.NewDecoder(bounded))
	if bounded.N <= 0 {
		err = fmt.Errorf("it is longer than %d bytes", mostFile)
	}
	if _, is := errors.AsType[*entryError](err); is {
		return nil, fmt.Errorf("--prices: %s: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("--prices: %s: %w: %s", name, err, fileHelp)
	}
	return f, nil
}

// read reads a list of providers, or an object of models, and refuses anything after it.
func (f *fileModels) read(decoder *json.Decoder) error {
	first, err := decoder.Token()
	if err != nil {
		return err
	}
	switch first {
	case json.Delim('{'):
		err = f.readObject(decoder)
	case json.Delim('['):
		err = f.readProviders(decoder)
	default:
		err = errors.New("it is neither an object nor a list")
	}
	if err != nil {
		return err
	}
	if _, err = decoder.Token(); err != nil { // the closing bracket
		return err
	}
	if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
		return errors.New("there is more after its end")
	}
	return nil
}

// readProviders reads the data of genai-prices: a list of providers with their models.
func (f *fileModels) readProviders(decoder *json.Decoder) error {
	for decoder.More() {
		var g Genai
		if err := decoder.Decode(&g); err != nil {
			return err
		}
		if g.ID == "" || g.Models == nil {
			return errors.New("a list of prices is one of providers, each with an id and models, as that of genai-prices is")
		}
		models, _, err := g.List()
		if err != nil {
			return err
		}
		for _, m := range models {
			f.add(g.ID, m)
		}
	}
	if f.models == nil {
		return errors.New("it has no model with a price")
	}
	return nil
}

// readObject reads an object of models, in our own form or in litellm's. The first entry shows which it is.
func (f *fileModels) readObject(decoder *json.Decoder) error {
	own := []Listed{}
	for first := true; decoder.More(); first = false {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if first {
			f.litellm = name == litellmSample || rawjson.Lookup(raw, "litellm_provider") != nil
		}
		if f.litellm {
			if err := f.addLitellm(name, raw); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		e, err := ownEntry(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err = e.toPrice(); err != nil {
			return &entryError{name, err}
		}
		own = append(own, Listed{Match: []string{name}, entry: e})
	}
	if !f.litellm {
		f.own = own
	}
	return nil
}

// entryError says what is wrong with a price in a file of the right form.
type entryError struct {
	name  string
	fault error
}

func (e *entryError) Error() string { return e.name + ": " + e.fault.Error() }

// ownEntry reads one price in our own form. It refuses unknown fields, since it would not count
// them.
func ownEntry(raw json.RawMessage) (e entry, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(&e)
	return e, err
}

// litellmSample is the name of the first entry of litellm's file, which explains the others.
const litellmSample = "sample_spec"

// addLitellm adds an entry of litellm's file. It leaves out models that are not priced by tokens of text,
// which then have no price.
func (f *fileModels) addLitellm(name string, raw json.RawMessage) error {
	if name == litellmSample {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	var provider string
	_ = json.Unmarshal(fields["litellm_provider"], &provider) // an entry of nobody has no price
	if provider == "" {
		return nil
	}
	e, ok := litellmEntry(fields)
	if !ok {
		return nil
	}
	if _, err := e.toPrice(); err != nil {
		return nil //nolint:nilerr // a slip in one of thousands of entries leaves that model without a price
	}
	provider = litellmProvider(provider)
	listed := Listed{Match: []string{name}, entry: e}
	f.add(litellmAll, listed)
	if prefix, rest, found := strings.Cut(name, "/"); found && litellmProvider(prefix) == provider {
		listed.Match = []string{rest, name}
	}
	f.add(provider, listed)
	return nil
}

// litellmAll holds all models by their whole names, for servers of one's own.
const litellmAll = ""

// litellmNames returns litellm's names for a vendor, from the names that genai-prices has for it.
func litellmNames(vendor string, genai []string) []string {
	if len(genai) == 0 {
		return []string{vendor, litellmAll}
	}
	theirs := map[string]string{
		"google": "gemini", "aws": "bedrock", "x-ai": "xai", "moonshotai": "moonshot", "together": "together_ai", "fireworks": "fireworks_ai",
	}
	if strings.HasPrefix(vendor, "vertex") {
		theirs["google"], theirs["anthropic"] = "vertex_ai", "vertex_ai"
	}
	if vendor == "generic" {
		return []string{litellmAll}
	}
	var names []string
	for _, name := range genai {
		if other, ok := theirs[name]; ok {
			name = other
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// litellmProvider returns one name for a provider whose APIs litellm lists under several.
func litellmProvider(name string) string {
	name = strings.TrimPrefix(name, "text-completion-")
	name, _, _ = strings.Cut(name, "-") // vertex_ai-anthropic_models
	switch name {
	case "bedrock_converse":
		return "bedrock"
	case "cohere_chat":
		return "cohere"
	case "azure_ai":
		return "azure"
	}
	return name
}

// litellmRates finds the field of a rate in litellm's name for it. The longer names come first.
var litellmRates = []struct {
	prefix string
	field  func(*rates) **float64
}{
	{"input_cost_per_token", func(r *rates) **float64 { return &r.Input }},
	{"output_cost_per_token", func(r *rates) **float64 { return &r.Output }},
	{"cache_read_input_token_cost", func(r *rates) **float64 { return &r.Cached }},
	{"cache_creation_input_token_cost_above_1hr", func(r *rates) **float64 { return &r.LongWrite }},
	{"cache_creation_input_token_cost", func(r *rates) **float64 { return &r.Write }},
}

// litellmTiers are the endings of rates of a tier.
var litellmTiers = []struct{ ending, tier string }{{"_flex", "flex"}, {"_priority", "priority"}, {"_batches", "batch"}, {"", ""}}

// parseLitellmName reads the name of a price: that of a rate, then perhaps a step, then perhaps the ending of a tier.
// input_cost_per_token_above_200k_tokens_priority is the input's rate above 200,000 tokens in the tier priority.
func parseLitellmName(name string) (field func(*rates) **float64, tier string, step int64, ok bool) {
	for _, rate := range litellmRates {
		rest, found := strings.CutPrefix(name, rate.prefix)
		if !found {
			continue
		}
		for _, t := range litellmTiers {
			if text, fits := strings.CutSuffix(rest, t.ending); fits {
				step, ok = parseStep(text)
				return rate.field, t.tier, step, ok
			}
		}
	}
	return nil, "", 0, false
}

// litellmByTier returns the rates of an entry by tier and step; 0: no step. It passes over other fields, and over prices
// that are unknown: a text or null, which is not a price of 0.
func litellmByTier(fields map[string]json.RawMessage) map[string]map[int64]*rates {
	byTier := map[string]map[int64]*rates{}
	for name, raw := range fields {
		field, tier, step, ok := parseLitellmName(name)
		var usd float64
		if !ok || rawjson.IsNull(raw) || json.Unmarshal(raw, &usd) != nil {
			continue
		}
		if byTier[tier] == nil {
			byTier[tier] = map[int64]*rates{}
		}
		if byTier[tier][step] == nil {
			byTier[tier][step] = new(rates)
		}
		perMillion := tidy(usd * 1e6)
		*field(byTier[tier][step]) = &perMillion
	}
	return byTier
}

// litellmEntry converts an entry of litellm's file; false if the model is not priced by tokens of text alone.
func litellmEntry(fields map[string]json.RawMessage) (converted entry, ok bool) {
	byTier := litellmByTier(fields)
	base := byTier[""][0]
	mode := strings.Trim(string(fields["mode"]), `"`)
	if base == nil || base.Input == nil || rawjson.Number(fields["input_cost_per_query"]) > 0 {
		return converted, false
	}
	if base.Output == nil {
		if mode != "embedding" && mode != "rerank" {
			return converted, false
		}
		base.Output = new(float64)
	}
	if thought := fields["output_cost_per_reasoning_token"]; thought != nil && tidy(rawjson.Number(thought)*1e6) != *base.Output {
		return converted, false // no price of ours tells thoughts from other output
	}
	converted.scheduled = scheduleOf(byTier[""])
	for _, tier := range litellmTiers {
		if steps := byTier[tier.tier]; tier.tier != "" && steps[0] != nil && steps[0].Input != nil && steps[0].Output != nil {
			converted.When = append(converted.When, when{Tier: tier.tier, scheduled: scheduleOf(steps)})
		}
	}
	return converted, true
}

// scheduleOf returns the rates by the length of the prompt. A rate that a step leaves out is that of the step
// below.
func scheduleOf(byStep map[int64]*rates) (s scheduled) {
	var steps []int64
	for tokens := range byStep {
		steps = append(steps, tokens)
	}
	slices.Sort(steps)
	s.rates = *byStep[0]
	below := s.rates
	for _, tokens := range steps {
		if tokens == 0 {
			continue
		}
		r := *byStep[tokens]
		for _, rate := range litellmRates {
			if field := rate.field(&r); *field == nil {
				*field = *rate.field(&below)
			}
		}
		s.Above, below = append(s.Above, above{tokens, r}), r
	}
	return s
}

// parseStep parses a step such as _above_200k_tokens; "" is no step.
func parseStep(text string) (tokens int64, ok bool) {
	if text == "" {
		return 0, true
	}
	var thousands int64
	if n, err := fmt.Sscanf(text, "_above_%dk_tokens", &thousands); n != 1 || err != nil || thousands <= 0 || text != fmt.Sprintf("_above_%dk_tokens", thousands) {
		return 0, false
	}
	return thousands * 1000, true
}
