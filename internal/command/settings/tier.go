package settings

import (
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/provider/catalog"
)

// flexTimeout is the time limit of one call of the flex tier, unless the user or the vendor sets a
// longer one. OpenAI's own examples have it.
const flexTimeout = 15 * time.Minute

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

// FlexFactor is the price of the flex tier, in prices of the standard one: OpenAI, Google and AWS ask
// for half.
const FlexFactor = 0.5

// PriceFactor returns what the tier of --service-tier costs, in prices of the standard one.
func (f *InputFlags) PriceFactor() float64 {
	if f.ServiceTier == catalog.Flex {
		return FlexFactor
	}
	return 1
}

// Tier returns the member of a body that asks for the tier of --service-tier; "" if there is no such
// flag.
func (f *InputFlags) Tier() string { return f.tiers()[f.ServiceTier] }

// checkTier refuses a tier that the provider does not have, and names the providers that have it.
func (f *InputFlags) checkTier() error {
	if f.ServiceTier == "" || f.Tier() != "" {
		return nil
	}
	if err := OneOf("service-tier", f.ServiceTier, catalog.Flex, catalog.Standard); err != nil {
		return err
	}
	var have []string
	for _, v := range catalog.Rows() {
		if v.Tiers[f.ServiceTier] != "" {
			have = append(have, v.Name)
		}
	}
	return fmt.Errorf("--service-tier %s: %s has no such tier that is known here; those that have: %s", f.ServiceTier, f.Name(), strings.Join(have, ", "))
}
