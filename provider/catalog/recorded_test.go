package catalog_test

import (
	"slices"
	"strconv"
	"strings"
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

// recordedOf are the recordings of a vendor's answers.
func recordedOf(name string) (cases []providertest.Case) {
	for _, c := range slices.Concat(providertest.Cases(), providertest.VendorCases()) {
		if c.Of(name) && c.Whole {
			cases = append(cases, c)
		}
	}
	return cases
}

// Each recording that a vendor alone is understood by says what it says in its words, and
// is one of a vendor that there is.
func TestVendorRecordings(t *testing.T) {
	for _, c := range providertest.VendorCases() {
		v, ok := catalog.Named(c.Vendor())
		if !ok {
			t.Errorf("%s: no such vendor", c.Name)
			continue
		}
		e := provider.ClassifyIn(c.Status, c.Header, c.Body, &v.Wording)
		if e == nil || e.Kind != c.Kind || e.HasRetryAfter != c.HasRetryAfter || c.Code != "" && e.Code != c.Code {
			t.Errorf("%s: %+v, want %v", c.Name, e, c.Kind)
		}
	}
}

// A vendor's own words change no answer that everybody's give its due: all that was recorded of
// it is read as it is without them.
func TestWordingLeavesOthers(t *testing.T) {
	for _, v := range catalog.Rows() {
		for _, c := range providertest.Cases() {
			if c.Fine || !c.Whole || c.Dialect != "" || !c.Of(v.Name) {
				continue // what only a dialect reads right is in the tests of provider/all
			}
			if e := provider.ClassifyIn(c.Status, c.Header, c.Body, &v.Wording); e == nil || e.Kind != c.Kind {
				t.Errorf("%s by the words of %s: %+v, want %v", c.Name, v.Name, e, c.Kind)
			}
		}
	}
}

// Each word to which a row gives a meaning is in a recording of that vendor, and decides it:
// without that word it is something else, or nobody else's words say so.
func TestEachWordIsRecorded(t *testing.T) {
	for _, v := range catalog.Rows() {
		for what, only := range entries(v.Wording) {
			decided := slices.ContainsFunc(recordedOf(v.Name), func(c providertest.Case) bool { return decides(only, c) })
			if !decided {
				t.Errorf("%s: no recording %s_… means anything by %s", v.Name, v.Name, what)
			}
		}
	}
}

// entries are what a wording says, each by itself.
func entries(w provider.Wording) map[string]provider.Wording {
	each := map[string]provider.Wording{}
	for word, kind := range w.Kinds {
		each["the word "+word] = provider.Wording{Kinds: map[string]provider.Kind{word: kind}}
	}
	for _, phrase := range w.Phrases {
		each["the phrase "+phrase.Says] = provider.Wording{Phrases: []provider.Phrase{phrase}}
	}
	for status, kind := range w.Statuses {
		each["the status "+strconv.Itoa(status)] = provider.Wording{Statuses: map[int]provider.Kind{status: kind}}
	}
	return each
}

// decides reports whether the one entry of a wording is what gives a recording its kind. It is
// asked with a kind that no answer has otherwise.
func decides(only provider.Wording, c providertest.Case) bool {
	marked := provider.Wording{Kinds: map[string]provider.Kind{}, Statuses: map[int]provider.Kind{}}
	var kind provider.Kind
	for word, k := range only.Kinds {
		marked.Kinds[word], kind = provider.Truncated, k
	}
	for _, p := range only.Phrases {
		kind, p.Kind = p.Kind, provider.Truncated
		marked.Phrases = append(marked.Phrases, p)
	}
	for status, k := range only.Statuses {
		marked.Statuses[status], kind = provider.Truncated, k
	}
	e := provider.ClassifyIn(c.Status, c.Header, c.Body, &marked)
	return e != nil && e.Kind == provider.Truncated && !c.Fine && c.Kind == kind
}

// What is one vendor's word alone is decided by the status where nobody knows who answers:
// a gateway that passes it on chose that.
func TestWordsOfOneVendor(t *testing.T) {
	body := []byte(`{"message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded"}`)
	mistral, _ := catalog.Named("mistral")
	for status, kind := range map[int]provider.Kind{429: provider.Throttled, 503: provider.Overloaded} {
		if e := provider.ClassifyIn(status, nil, body); e == nil || e.Kind != kind {
			t.Errorf("%d of whomever: %v, want %v", status, e, kind)
		}
		if e := provider.ClassifyIn(status, nil, body, &mistral.Wording); e == nil || e.Kind != provider.Overloaded {
			t.Errorf("%d of Mistral: %v", status, e)
		}
	}
}

// A vendor's other errors, and its words in the mouth of others, keep their kind.
func TestNeighboursKeepTheirKind(t *testing.T) {
	for _, c := range []struct {
		vendor, code string
		status       int
		want         provider.Kind
	}{
		{"zai", "1302", 429, provider.Throttled}, // too many calls in flight
		{"zai", "1303", 429, provider.Throttled}, // too many calls
		{"zai", "1305", 429, provider.Throttled},
		{"zai", "1312", 429, provider.Throttled}, // the model is busy
		{"zai", "1313", 429, provider.Throttled}, // slowed down for fair use
		{"zai", "1210", 400, provider.Invalid},
		{"zai", "1212", 400, provider.Invalid}, // the model does not have that method
		{"zai", "1214", 400, provider.Invalid},
		{"zai", "1261", 400, provider.Invalid}, // the prompt is too long
		{"zai", "1002", 401, provider.Unauthorized},
		{"zai", "1230", 500, provider.Server},
		{"generic", "1308", 429, provider.Throttled},
		{"generic", "1301", 400, provider.Invalid},
		{"huggingface", "unsupported_parameter", 400, provider.Invalid},
		{"openai", "model_not_supported", 400, provider.Invalid},
	} {
		v, _ := catalog.Named(c.vendor)
		body := []byte(`{"error":{"code":"` + c.code + `","message":"m"}}`)
		if e := provider.ClassifyIn(c.status, nil, body, &v.Wording); e.Kind != c.want {
			t.Errorf("%s %d %s: %v, want %v", c.vendor, c.status, c.code, e.Kind, c.want)
		}
	}
}

// What words are compared with is in small letters.
func TestWordsAreSmall(t *testing.T) {
	for _, v := range catalog.Rows() {
		for word := range v.Wording.Kinds {
			if word != strings.ToLower(word) {
				t.Errorf("%s: %s", v.Name, word)
			}
		}
		for _, p := range v.Wording.Phrases {
			if p.Says == "" || p.Says != strings.ToLower(p.Says) {
				t.Errorf("%s: %s", v.Name, p.Says)
			}
		}
	}
}
