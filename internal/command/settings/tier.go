package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"

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

// tiers returns the tiers of service of the called provider, as its vendor's row has them. The
// simulated provider speaks as OpenAI does, and so may a server that no vendor has. A vendor whose
// address is given to --provider openai has those of its own row.
func (f *VendorFlags) tiers() map[string]string {
	of := f.Vendor
	switch {
	case f.Provider == ProviderSim:
		of = catalog.For(ProviderOpenAI, "")
	case f.Provider == ProviderOpenAI:
		if at := catalog.For("", f.BaseURL); len(at.Hosts) > 0 {
			of = at
		}
	}
	return of.Tiers
}

// FlexFactor is the price of the flex tier at OpenAI and Google, in prices of the standard one.
const FlexFactor = 0.5

// FlexIsHalf reports whether FlexFactor is what the called provider asks for. AWS names a discount,
// and no factor that holds for all its models.
func (f *VendorFlags) FlexIsHalf() bool { return f.Vendor.Name != "bedrock" }

// PriceFactor returns what the tier of --service-tier costs, in prices of the standard one.
func (f *InputFlags) PriceFactor() float64 {
	if f.ServiceTier == catalog.Flex && f.FlexIsHalf() {
		return FlexFactor
	}
	return 1
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
	if f.All.Changed("spill") && f.ServiceTier != TierAuto && f.Planned == nil {
		return errors.New("--spill: only --service-tier auto goes from one tier to another: add that, or remove it")
	}
	return AtLeast("spill", f.Spill, 0)
}

// checkTier refuses a tier that the provider does not have, and names the providers that have it.
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
