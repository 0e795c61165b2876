package gemini

import "strings"

// The members of thinkingConfig that Google's own door in OpenAI's shape puts for reasoning_effort
// (ai.google.dev, "OpenAI compatibility", Thinking). Gemini 2.5 has budgets of tokens, Gemini 3
// has levels.
var (
	budgets = map[string]string{
		"none": `"thinkingBudget":0`, "minimal": `"thinkingBudget":1024`, "low": `"thinkingBudget":1024`,
		"medium": `"thinkingBudget":8192`, "high": `"thinkingBudget":24576`,
	}
	levels = map[string]string{
		"minimal": `"thinkingLevel":"MINIMAL"`, "low": `"thinkingLevel":"LOW"`,
		"medium": `"thinkingLevel":"MEDIUM"`, "high": `"thinkingLevel":"HIGH"`,
	}
)

// thinking maps an effort to a member of thinkingConfig; "" means that Google documents none for
// the model. Pro models always think, and have no minimal level.
func thinking(model, effort string) string {
	model = strings.TrimPrefix(model, "models/")
	pro := strings.Contains(model, "-pro")
	switch {
	case strings.HasPrefix(model, "gemini-2.5-") && !(pro && effort == "none"):
		return budgets[effort]
	case strings.HasPrefix(model, "gemini-3") && pro && effort == "minimal":
		return levels["low"]
	case strings.HasPrefix(model, "gemini-3"):
		return levels[effort]
	}
	return ""
}

// wantsSignature reports whether a model refuses a turn whose first tool call has no signature.
// Gemini 3 was the first.
func wantsSignature(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return !strings.HasPrefix(model, "gemini-1.") && !strings.HasPrefix(model, "gemini-2.")
}
