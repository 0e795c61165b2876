package catalog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/providertest"
)

// hosted reports whether a row is a vendor's, and not a server of one's own or anybody's.
func hosted(v catalog.Vendor) bool { return !v.Local && v.Name != "generic" }

// answers are what each hosted vendor is recorded with.
var answers = []struct {
	name string
	is   func(providertest.Case) bool
}{
	{"success", func(c providertest.Case) bool { return c.Fine && c.Mark == provider.Unknown }},
	{"rate limit", func(c providertest.Case) bool { return !c.Fine && c.Kind == provider.Throttled }},
	{"quota", func(c providertest.Case) bool { return !c.Fine && c.Kind == provider.QuotaExhausted }},
	{"key", func(c providertest.Case) bool { return !c.Fine && c.Kind == provider.Unauthorized }},
	{"invalid", func(c providertest.Case) bool { return !c.Fine && c.Kind == provider.Invalid }},
}

const (
	billsLater = "bills afterwards, and documents no refusal for money"
	unknown    = "documents no answer for an account without money, and none was found"
)

// missing are answers that no recording shows, and why.
var missing = map[string]string{
	"azure quota": billsLater, "azure-deployments quota": billsLater, "azure-anthropic quota": billsLater,
	"bedrock-openai quota": billsLater, "bedrock-anthropic quota": billsLater, "sagemaker quota": billsLater,
	"sambanova quota": unknown, "nebius quota": unknown, "deepinfra quota": unknown,
}

// Each hosted vendor is recorded with an answer, a rate limit, an empty account, a refused
// key and a bad request, each with its source, but for those that are missing for a reason.
func TestEachHostedVendorIsRecorded(t *testing.T) {
	for _, v := range catalog.Rows() {
		if !hosted(v) {
			continue
		}
		cases := slices.DeleteFunc(recordedOf(v.Name), func(c providertest.Case) bool { return c.Source == providertest.Source{} })
		for _, a := range answers {
			is, why := slices.ContainsFunc(cases, a.is), missing[v.Name+" "+a.name]
			if is && why != "" {
				t.Errorf("%s: %s is recorded, and listed as missing", v.Name, a.name)
			}
			if !is && why == "" {
				t.Errorf("%s: no recording with a source shows %s", v.Name, a.name)
			}
		}
	}
}

// A recording's words are of the kind that its vendor's row and dialect give them: a door that
// shares them reads them alike.
func TestSharedRecordings(t *testing.T) {
	for _, c := range slices.Concat(providertest.Cases(), providertest.VendorCases()) {
		for _, name := range c.Also {
			v, ok := catalog.Named(name)
			if !ok {
				t.Errorf("%s: no vendor %s", c.Name, name)
				continue
			}
			if e := provider.ClassifyIn(c.Status, c.Header, c.Body, &v.Wording); !c.Fine && (e == nil || e.Kind != c.Kind) {
				t.Errorf("%s by the words of %s: %+v, want %v", c.Name, name, e, c.Kind)
			}
		}
	}
}

// Each row says where its facts stand and when they were read there.
func TestRowsHaveSources(t *testing.T) {
	for _, v := range catalog.Rows() {
		switch v.Name {
		case "local", "generic": // nobody's facts
			continue
		}
		day, err := time.Parse(time.DateOnly, v.Day)
		if v.Source == "" || err != nil || day.Year() < 2026 {
			t.Errorf("%s: source %q of %q: want a place and a day such as 2026-11-26", v.Name, v.Source, v.Day)
		}
	}
}
