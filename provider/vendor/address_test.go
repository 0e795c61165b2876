package vendor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider/vendor"
)

// An address is that of its place.
func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   vendor.Place
		want string
	}{
		{"openai", vendor.Place{}, "https://api.openai.com/v1"},
		{"azure", vendor.Place{Resource: "acme-we"}, "https://acme-we.openai.azure.com/openai/v1"},
		{"bedrock", vendor.Place{Region: "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com"},
		{"bedrock-openai", vendor.Place{Region: "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"},
		{"vertex", vendor.Place{Project: "p", Location: "asia-east1"}, "https://asia-east1-aiplatform.googleapis.com/v1/projects/p/locations/asia-east1/publishers/google"},
		{"vertex", vendor.Place{Project: "p", Location: "global"}, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google"},
		{"vertex", vendor.Place{Project: "p", Location: "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google"},
	} {
		v, _ := vendor.Named(tt.name)
		if got, err := v.Address(tt.at); got != tt.want || err != nil {
			t.Errorf("%s %+v: %s, %v", tt.name, tt.at, got, err)
		}
	}
}

// What would make another address of it is refused, by the name of the part: a key is sent
// there.
func TestAddressRefuses(t *testing.T) {
	v, _ := vendor.Named("azure")
	for _, resource := range []string{"", "evil.com/", "evil.com#", "a.b", "me@evil", "a b", "ä", "{region}", "..", "a:1", strings.Repeat("a", 64)} {
		got, err := v.Address(vendor.Place{Resource: resource})
		if !errors.Is(err, vendor.ErrPart) || !strings.Contains(err.Error(), "azure: its resource ") {
			t.Errorf("%q: %q, %v", resource, got, err)
		}
	}
	if _, err := vendor.For("generic", "").Address(vendor.Place{}); !errors.Is(err, vendor.ErrNoAddress) {
		t.Errorf("generic: %v", err)
	}
}

// What an address needs can be asked for, and looked for in the environment.
func TestNeeds(t *testing.T) {
	for name, want := range map[string][]string{
		"openai": nil, "generic": nil, "azure": {"resource"}, "bedrock": {"region"}, "vertex": {"project", "location"},
	} {
		v, _ := vendor.Named(name)
		if got := v.Needs(); !slices.Equal(got, want) {
			t.Errorf("%s needs %q, want %q", name, got, want)
		}
		for _, part := range want {
			if len(vendor.Variables(part)) == 0 {
				t.Errorf("no variable has the %s", part)
			}
		}
	}
	if got := vendor.Variables("planet"); got != nil {
		t.Errorf("the planet is in %q", got)
	}
}
