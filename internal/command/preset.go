package command

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/estimate"
)

// estimateOf returns what is known of a request before its lane is: its prompt, and the
// bound on its output. The real usage corrects it right after the call.
func estimateOf(q *prompts.Request) limiter.Cost {
	input, output := estimate.For(q.Endpoint, q.Body)
	return limiter.Cost{Requests: 1, Input: input, Output: output}
}

// costOf returns the cost that a request draws when its provider lets it in.
func costOf(c limiter.Charge, q *prompts.Request) limiter.Cost { return c.Of(estimateOf(q)) }

// presetAuto leaves the preset to the base URL.
const presetAuto = "auto"

// presets lists the vendors that --preset names.
var presets = []string{
	"anthropic", "azure", "bedrock", "deepseek", "gemini", "generic", "groq", "llamacpp",
	"local", "mistral", "ollama", "openai", "openrouter", "together", "vllm",
}

func registerPreset(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "preset", presetAuto, "how the provider counts tokens: auto (by --provider, and for openai by the base URL), or "+strings.Join(presets, ", "))
	nameValues(fs, map[string]string{"preset": "NAME"})
}

func checkPreset(name string) error {
	return oneOf("preset", name, append([]string{presetAuto}, presets...)...)
}
