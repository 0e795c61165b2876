package settings

import (
	"testing"

	"github.com/headrace/headrace/provider/catalog"
)

// The flex tier counts as half the price where the provider says so. AWS names no factor.
func TestPriceFactor(t *testing.T) {
	for name, want := range map[string]float64{"openai": FlexFactor, "gemini": FlexFactor, "bedrock": 1} {
		f := &InputFlags{ServiceTier: catalog.Flex}
		f.Vendor = catalog.For(name, "")
		if f.Vendor.Tiers[catalog.Flex] == "" {
			t.Errorf("%s has no flex tier", name)
		}
		if got := f.PriceFactor(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
