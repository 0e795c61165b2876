package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

// flexTimeout is the time limit of one call of the flex tier, unless the user or the vendor sets a
// longer one. OpenAI's own examples have it.
const flexTimeout = 15 * time.Minute

// TierAuto is the value of --service-tier for lines that go to the flex tier, and to the standard one
// while the first has had no room for --spill.
const TierAuto = "auto"

// usualSpill bounds the wait of a line for half the price: a tier that is full for ten minutes often
// stays so for hours.
const usualSpill = 10 * time.Minute

// FlexLane begins the names of lanes of the flex tier, next to those of the standard one.
func FlexLane(provider string) string { return provider + "-" + catalog.Flex }

// tiers returns the service tiers of the called provider, from its vendor's row. The simulated provider has
// those of OpenAI. With --provider openai the address may belong to another vendor, whose tiers then hold.
func (f *VendorFlags) tiers() map[string]string {
	vendor := f.Vendor
	switch {
	case f.Provider == ProviderSim:
		vendor = catalog.For(ProviderOpenAI, "")
	case f.Provider == ProviderOpenAI:
		if vendorAtAddress := catalog.For("", f.BaseURL); len(vendorAtAddress.Hosts) > 0 {
			vendor = vendorAtAddress
		}
	}
	return vendor.Tiers
}

// PriceTier returns the tier whose price counts for lines that name none. With auto it is the standard
// one, which costs more.
func (f *InputFlags) PriceTier() provider.Tier {
	if f.ServiceTier == catalog.Flex {
		return provider.FlexTier
	}
	return provider.StandardTier
}

// OffersFlex reports whether the provider has a flex tier, and no flag says which tier to use.
func (f *Flags) OffersFlex() bool {
	return f.ServiceTier == "" && f.Answering(f.Preset).Tiers[catalog.Flex] != ""
}

// Tier returns the member of a body that asks for the tier of --service-tier; "" if there is no such
// flag. With auto it is that of lines that go to the standard tier.
func (f *InputFlags) Tier() string {
	if f.ServiceTier == TierAuto {
		return f.tiers()[catalog.Standard]
	}
	return f.tiers()[f.ServiceTier]
}

// TierOfFlex returns the member that asks for the flex tier.
func (f *InputFlags) TierOfFlex() string { return f.tiers()[catalog.Flex] }

// checkSpill refuses a wait for a tier that nothing waits for.
func (f *Flags) checkSpill() error {
	auto := f.ServiceTier == TierAuto || f.Fleet != nil && f.Fleet.isAuto()
	if f.All.Changed("spill") && !auto && f.Planned == nil {
		return errors.New("--spill: only --service-tier auto goes from one tier to another: add that, or remove it")
	}
	return AtLeast("spill", f.Spill, 0)
}

// checkTier refuses a tier that the provider does not have, and lists the providers that have it.
func (f *InputFlags) checkTier() error {
	if f.ServiceTier == "" || f.Tier() != "" {
		return nil
	}
	if err := OneOf("service-tier", f.ServiceTier, catalog.Flex, catalog.Standard, TierAuto); err != nil {
		return err
	}
	var have []string
	for _, v := range catalog.Rows() {
		if v.Tiers != nil {
			have = append(have, v.Name)
		}
	}
	return fmt.Errorf("--service-tier %s: %s has no such tier that is known here; those that have: %s", f.ServiceTier, f.Name(), strings.Join(have, ", "))
}
