package settings

import (
	"testing"

	"github.com/headrace/headrace/provider/catalog"
)

// A server on a private address has none of the built-in prices, in whatever dialect it is called. A
// public one that nobody knows has those of its dialect's makers, and a preset says whose they are.
func TestNoListPricesOnPrivateAddress(t *testing.T) {
	for _, c := range []struct {
		provider, base, preset, model string
		known                         bool
	}{
		{"openai", "http://10.0.0.7:8000/v1", presetAuto, "gpt-4o", false},
		{"generic", "http://10.0.0.7:8000/v1", presetAuto, "gpt-4o", false},
		{"anthropic", "http://127.0.0.1:8000", presetAuto, "claude-sonnet-4-5", false},
		{"gemini", "http://models.local:8000", presetAuto, "gemini-2.5-flash", false},
		{"openai", "http://10.0.0.7:8000/v1", "openai", "gpt-4o", true},
		{"openai", "https://gateway.example.com/v1", presetAuto, "gpt-4o", true},
		{"anthropic", "https://gateway.example.com", presetAuto, "claude-sonnet-4-5", true},
		{"anthropic", "", presetAuto, "claude-sonnet-4-5", true},
	} {
		v := VendorFlags{Provider: c.provider, BaseURL: c.base}
		v.Vendor, _ = catalog.Named(c.provider)
		var prices priceFlags
		if err := prices.readPrices(&InputFlags{VendorFlags: v}, c.preset); err != nil {
			t.Fatal(err)
		}
		if _, _, known := prices.Known.Of(c.model); known != c.known {
			t.Errorf("%+v", c)
		}
	}
}
