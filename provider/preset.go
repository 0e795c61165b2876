package provider

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// A Preset is what is known of a provider before its first answer: what a call is
// charged when it is let in, and how to read its headers. The zero value is of a
// provider of which nothing is known, charges like OpenAI's, and has no name.
type Preset struct {
	Name string

	// Local: a server of one's own. It has no quota and never answers 429; what is
	// too much for it waits, and shows in the latency alone.
	Local bool

	rule rule
}

// rule is how a provider charges a call when it lets it in.
type rule uint8

const (
	greater    rule = iota // the greater of the prompt and what may be written
	both                   // the prompt and all that may be written
	asExpected             // the prompt, and the output as it comes
	promptOnly             // the prompt; output is not limited
)

// Assumptions about output that a body does not bound, in tokens.
const (
	// ExpectedOutput is how long an answer is taken to be until its model's real
	// ones are known: some 200 English words, a usual answer to a short question.
	ExpectedOutput = 300

	// BedrockOutput is what Bedrock is taken to charge for a call without max_tokens.
	// It charges the model's own maximum, which is 4,096 for older models and up to
	// 64,000 for newer ones: always set max_tokens there.
	BedrockOutput = 4096
)

// presets are what the providers document, or what their users have observed:
//
//   - OpenAI: a call's tokens are "the maximum of max_tokens and the estimated number
//     of tokens based on the character count of your request".
//   - Azure: estimated likewise at arrival, in windows; no refund.
//   - Anthropic: input is estimated at the start and corrected, output counts as it is
//     written, and "max_tokens does not factor in".
//   - Gemini: a minute's limit on tokens is on input alone.
//   - Bedrock: input and max_tokens are deducted at the start, and what was not used is
//     given back at the end.
var presets = []Preset{
	{Name: "anthropic", rule: asExpected},
	{Name: "azure"},
	{Name: "bedrock", rule: both},
	{Name: "deepseek"},
	{Name: "gemini", rule: promptOnly},
	{Name: "generic"},
	{Name: "groq"},
	{Name: "llamacpp", Local: true},
	{Name: "local", Local: true},
	{Name: "mistral"},
	{Name: "ollama", Local: true},
	{Name: "openai"},
	{Name: "openrouter"},
	{Name: "together"},
	{Name: "vllm", Local: true},
}

// PresetNames are the names that PresetFor knows, in order.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}

// PresetFor gives the preset of that name. A name that is not known ("", "auto")
// leaves it to the base URL: a known host is its provider, a loopback or private
// address and a host without a dot are local, no URL at all is openai, and anything
// else is generic.
func PresetFor(name, baseURL string) Preset {
	if p, ok := presetNamed(name); ok {
		return p
	}
	p, _ := presetNamed(nameByURL(baseURL))
	return p
}

func presetNamed(name string) (Preset, bool) {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == strings.ToLower(name) })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}

// hosts are the endpoints of providers, by the end of their names.
var hosts = []struct{ suffix, name string }{
	{"api.openai.com", "openai"},
	{".openai.azure.com", "azure"},
	{".cognitiveservices.azure.com", "azure"},
	{"api.anthropic.com", "anthropic"},
	{"generativelanguage.googleapis.com", "gemini"},
	{"aiplatform.googleapis.com", "gemini"},
	{"api.groq.com", "groq"},
	{"api.together.xyz", "together"},
	{"api.together.ai", "together"},
	{"api.mistral.ai", "mistral"},
	{"openrouter.ai", "openrouter"},
	{"api.deepseek.com", "deepseek"},
}

func nameByURL(base string) string {
	if base == "" {
		return "openai"
	}
	u, err := url.Parse(base)
	if err != nil {
		return "generic"
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, h := range hosts {
		if host == h.suffix || strings.HasSuffix(host, "."+strings.TrimPrefix(h.suffix, ".")) {
			return h.name
		}
	}
	switch {
	case strings.HasPrefix(host, "bedrock-") && strings.HasSuffix(host, ".amazonaws.com"):
		return "bedrock"
	case isPrivate(host):
		return "local"
	}
	return "generic"
}

// isPrivate reports whether a host can only be one's own: an address that no
// public one is, or a name that no public one is.
func isPrivate(host string) bool {
	if host == "" {
		return false
	}
	host, _, _ = strings.Cut(host, "%") // the zone of an IPv6 address
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
	}
	if !strings.Contains(host, ".") { // localhost, and services of a compose file
		return true
	}
	for _, end := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// Charge estimates what the provider draws from its limits when it lets a request
// in, in tokens: input and output apart, and their sum is what a limit on both
// together is charged. It is an estimate of PromptTokens and MaxOutput; neither
// part is negative.
func (p Preset) Charge(body []byte) (input, output float64) {
	input, output = estimate(body)
	switch p.rule {
	case both:
		if output == 0 {
			output = BedrockOutput
		}
	case asExpected:
		if output == 0 || output > ExpectedOutput {
			output = ExpectedOutput
		}
	case promptOnly:
		output = 0
	default:
		output = max(0, output-input)
	}
	return input, output
}
