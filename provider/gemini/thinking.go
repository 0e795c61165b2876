package gemini

import "strings"

// What Google's own door in OpenAI's shape makes of reasoning_effort (ai.google.dev, "OpenAI
// compatibility", Thinking), as members of thinkingConfig. Gemini 2.5 has budgets of tokens,
// Gemini 3 has levels.
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

// thinking is how a model is told to think that much; "" is where nothing is documented. Pro
// models cannot be kept from thinking, and know no minimal level.
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

// wantsSignature says that a model refuses a turn whose first call of a tool has no signature.
// Gemini 3 was the first.
func wantsSignature(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return !strings.HasPrefix(model, "gemini-1.") && !strings.HasPrefix(model, "gemini-2.")
}
