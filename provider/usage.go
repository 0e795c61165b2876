package provider

import (
	"math"

	"github.com/headrace/headrace/provider/rawjson"
)

// maxTokenCount bounds a reported count: far over any model's context, far
// under where sums over millions of items overflow an int64.
const maxTokenCount = 1 << 40

// Usage counts the tokens of one call. CachedTokens (read from a cache) and CacheWriteTokens
// are parts of InputTokens, and ReasoningTokens are part of OutputTokens, whatever the
// provider's own convention.
type Usage struct {
	InputTokens, OutputTokens, CachedTokens, CacheWriteTokens, ReasoningTokens int64
	// LongWriteTokens are the part of CacheWriteTokens that the cache keeps for an hour, which
	// costs more.
	LongWriteTokens int64

	// Told holds the cost that the answer names, in picodollars, if HasTold. A price table
	// decides whether that provider's word counts.
	Told    int64
	HasTold bool
	// Tier is the class of service that the answer names.
	Tier Tier
}

// Add returns the sum of both. The sum has a told cost if each part has one, and a tier if
// both have the same.
func (u Usage) Add(other Usage) Usage {
	switch (Usage{}) {
	case u:
		return other
	case other:
		return u
	}
	if u.HasTold = u.HasTold && other.HasTold; u.HasTold {
		u.Told = addCapped(u.Told, other.Told)
	} else {
		u.Told = 0
	}
	if u.Tier != other.Tier {
		u.Tier = MixedTier
	}
	u.LongWriteTokens += other.LongWriteTokens
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.CachedTokens += other.CachedTokens
	u.CacheWriteTokens += other.CacheWriteTokens
	u.ReasoningTokens += other.ReasoningTokens
	return u
}

// addCapped returns the sum of two costs, or the highest that fits.
func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// MostCost is the most that an item can cost, in USD. It is more than all the money that
// there is, and so little that the costs of any number of items have a finite sum.
const MostCost = 1e24

// IsCost reports whether usd may be the cost of an item: 0 or more, and at most [MostCost].
// Any other value counts as an unknown cost.
func IsCost(usd float64) bool { return usd >= 0 && usd <= MostCost }

// counts holds an answer's token counts, before it is settled which of them
// are parts of others.
type counts struct {
	known bool // input or output was reported

	input, output, total int64
	toolUse              int64 // Gemini: input that is not in input
	reasoning            int64
	thoughts             bool  // Gemini's name for reasoning, which the output does not contain
	cached               int64 // read from a cache, as a part of the input
	writtenIn            int64 // to a cache, as a part of the input
	read, written        int64 // from and to a cache, by names that may mean tokens outside the input
	longWrites           int64 // written to a cache for an hour

	cost, upstream, ticks []byte // what it cost, in the words of three providers
	ownKey                bool   // OpenRouter: upstream comes on top of cost
	tier                  []byte
}

// tokens returns the usage of an answer, false if it reports none.
func (a *answer) tokens() (Usage, bool) {
	var c counts
	c.readFrom(a.usage)
	if !c.known {
		c.readFrom(a.metadata)
	}
	if c.total > 0 && c.input+c.output == 0 && a.isScoresOnly() { // Jina, Voyage
		c.input, c.known = c.total, true
	}
	if !c.known && a.count != nil { // Ollama; a prompt that was cached is not counted
		c.input, c.output, c.known = tokenCount(a.promptCount), tokenCount(a.count), true
	}
	if a.tier != nil {
		c.tier = a.tier
	}
	return c.normalized(), c.known
}

// readFrom reads the object in which a provider counts.
func (c *counts) readFrom(raw []byte) {
	if !isObject(raw) {
		return
	}
	for w := rawjson.WalkIn(raw); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens":
			c.input, c.known = tokenCount(value), true
		case "completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens":
			c.output, c.known = tokenCount(value), true
		case "total_tokens", "totalTokenCount", "totalTokens":
			c.total = tokenCount(value)
		case "prompt_tokens_details", "input_tokens_details":
			c.cached = max(c.cached, tokenCount(rawjson.Lookup(value, "cached_tokens")))
			c.writtenIn = tokenCount(rawjson.Lookup(value, "cache_write_tokens"))
		case "completion_tokens_details", "output_tokens_details":
			c.reasoning = max(c.reasoning, tokenCount(reasoningCount(value)))
		default:
			c.readRare(string(w.Name), value)
		}
	}
}

// reasoningCount returns the count of the tokens of reasoning among the details of the output. Of
// two names, the first counts.
func reasoningCount(details []byte) []byte {
	for w := rawjson.WalkIn(details); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "reasoning_tokens", "thinking_tokens": // the second is Anthropic's
			return value
		}
	}
	return nil
}

// UsageIn reads an object in which a provider counts tokens, in any of the spellings that
// ReplyOf knows. It returns false for anything else, and if the object has neither input nor
// output.
func UsageIn(object []byte) (Usage, bool) {
	var c counts
	c.readFrom(object)
	return c.normalized(), c.known
}

// readRare reads the counts that only one or two providers have.
func (c *counts) readRare(name string, value []byte) {
	switch name {
	case "prompt_cache_hit_tokens", "cachedContentTokenCount", "cached_tokens": // DeepSeek, Gemini, Moonshot
		c.cached = max(c.cached, tokenCount(value))
	case "cache_read_input_tokens", "cacheReadInputTokens": // Anthropic, Converse
		c.read = tokenCount(value)
	case "cache_creation_input_tokens", "cacheWriteInputTokens":
		c.written = tokenCount(value)
	case "thoughtsTokenCount":
		c.reasoning, c.thoughts = tokenCount(value), true
	case "toolUsePromptTokenCount":
		c.toolUse = tokenCount(value)
	case "cache_creation":
		c.longWrites = tokenCount(rawjson.Lookup(value, "ephemeral_1h_input_tokens"))
	case "cacheDetails": // Converse's: what was written, by the time for which it is kept
		for w := rawjson.WalkIn(value); w.Next(); {
			if entry := w.Skip(); rawjson.IsWord(rawjson.Lookup(entry, "ttl"), "1h") {
				c.longWrites = min(c.longWrites+tokenCount(rawjson.Lookup(entry, "inputTokens")), maxTokenCount)
			}
		}
	case "service_tier", "serviceTier": // Anthropic's, Gemini's; OpenAI's stands outside
		c.tier = value
	case "trafficType": // Vertex's
		if c.tier == nil {
			c.tier = value
		}
	case "cost": // OpenRouter's number, Perplexity's object
		if c.cost = value; isObject(value) {
			c.cost = rawjson.Lookup(value, "total_cost")
		}
	case "is_byok":
		c.ownKey = string(value) == "true"
	case "cost_details":
		c.upstream = rawjson.Lookup(value, "upstream_inference_cost")
	case "cost_in_usd_ticks": // xAI
		c.ticks = value
	case "tokens": // Cohere: what was read and written
		c.readFrom(value)
	case "billed_units": // and the part of it that is paid, which counts if there is nothing else
		if !c.known {
			c.readFrom(value)
		}
	}
}

// normalized returns the counts in one convention: input is all that was read, cache included,
// and output is all that is billed as output. If there is a total, its excess over its parts
// shows which counts are not yet in the input or output. Without one, the names do: the caches
// of Anthropic and Converse, the thoughts of Gemini. If the total is less than its parts,
// the parts are believed. Caches of more than the whole input were never in it, whatever the
// total says: Converse may count Claude's so.
func (c *counts) normalized() Usage {
	if !c.known {
		return Usage{} // a total alone does not tell input from output
	}
	cache := max(c.cached, c.read) + c.written
	c.input += c.toolUse
	gap := c.total - c.input - c.output
	switch {
	case c.total == 0:
		if c.input += c.read + c.written; c.thoughts {
			c.output += c.reasoning
		}
	case gap <= 0 && c.read+c.written > c.input:
		c.input += c.read + c.written
	case gap <= 0: // they are inside
	case gap == cache:
		c.input += gap
	case gap == c.reasoning, c.reasoning == 0:
		c.output += gap
	case gap == cache+c.reasoning:
		c.input, c.output = c.input+cache, c.output+c.reasoning
	}
	cached := max(c.cached, c.read)
	written := max(c.written, c.writtenIn)
	u := Usage{
		InputTokens: max(c.input, cached), OutputTokens: max(c.output, c.reasoning), // a part is no more than the whole
		CachedTokens: cached, CacheWriteTokens: written, LongWriteTokens: min(c.longWrites, written), ReasoningTokens: c.reasoning,
	}
	u.Tier = tierOf(c.tier)
	u.Told, u.HasTold = c.reportedCost()
	return u
}

// The units in which providers tell a cost, in picodollars. OpenRouter's credit is a dollar.
const (
	picosPerDollar = 1e12
	picosPerTick   = 100 // xAI: ten thousand million ticks are a dollar
)

// reportedCost returns the cost that the answer reports. With a key of the user's own, OpenRouter's
// cost is its fee alone, and the upstream provider bills the rest.
func (c *counts) reportedCost() (picodollars int64, ok bool) {
	if isNumber(c.ticks) {
		return picodollarsOf(rawjson.Number(c.ticks) * picosPerTick)
	}
	if !isNumber(c.cost) {
		return 0, false
	}
	usd := rawjson.Number(c.cost)
	if c.ownKey && isNumber(c.upstream) {
		usd += rawjson.Number(c.upstream)
	}
	return picodollarsOf(usd * picosPerDollar)
}

// picodollarsOf rounds a told cost. One that is negative, or so large that it is nonsense, does
// not count.
func picodollarsOf(x float64) (picodollars int64, ok bool) {
	if x < 0 || x >= 1<<62 {
		return 0, false
	}
	return int64(math.Round(x)), true
}

func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// Tier is the class of service in which a provider answered a call. It changes the price.
type Tier uint8

// The tiers. The zero value is the one that a price is for.
const (
	StandardTier Tier = iota
	FlexTier
	PriorityTier
	BatchTier
	OtherTier // a word that is not known
	MixedTier // calls of several tiers, counted together
)

// tierNames are the words of files; those of OtherTier and MixedTier are for people.
var tierNames = [...]string{"standard", "flex", "priority", "batch", "other", "mixed"}

func (t Tier) String() string { return tierNames[min(t, MixedTier)] }

// tierOf reads the word for a tier, which Bedrock puts into an object. An answer without one is of the
// StandardTier.
func tierOf(raw []byte) Tier {
	if isObject(raw) {
		raw = rawjson.Lookup(raw, "type")
	}
	if !rawjson.IsString(raw) {
		return StandardTier
	}
	switch string(rawjson.Unquote(raw)) {
	case "", "default", "standard", "standard_only", "auto", "on_demand", "ON_DEMAND", "TRAFFIC_TYPE_UNSPECIFIED":
		return StandardTier
	case "flex", "ON_DEMAND_FLEX":
		return FlexTier
	case "priority", "ON_DEMAND_PRIORITY":
		return PriorityTier
	case "batch":
		return BatchTier
	}
	return OtherTier
}

// tokenCount reads a token count; it returns 0 for a negative number or anything else.
func tokenCount(raw []byte) (n int64) {
	for _, c := range raw {
		if c < '0' || c > '9' || n > maxTokenCount {
			return int64(min(max(rawjson.Number(raw), 0), maxTokenCount))
		}
		n = n*10 + int64(c-'0')
	}
	return min(n, maxTokenCount)
}
