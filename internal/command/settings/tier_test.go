package settings

import (
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

// With --service-tier flex prices of that tier count, with auto those of the standard one. Each vendor
// with a flex tier offers it.
func TestPriceTier(t *testing.T) {
	for word, want := range map[string]provider.Tier{catalog.Flex: provider.FlexTier, TierAuto: provider.StandardTier, "": provider.StandardTier} {
		if got := (&InputFlags{ServiceTier: word}).PriceTier(); got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
	for _, name := range []string{"openai", "gemini", "bedrock", "anthropic"} {
		f := &Flags{Preset: name}
		if got := f.OffersFlex(); got != (name != "anthropic") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
