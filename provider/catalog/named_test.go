package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider/catalog"
)

// An address is that of its place.
func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   catalog.Place
		want string
	}{
		{"openai", catalog.Place{}, "https://api.openai.com/v1"},
		{"azure", catalog.Place{Resource: "acme-we"}, "https://acme-we.openai.azure.com/openai/v1"},
		{"bedrock", catalog.Place{Region: "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com"},
		{"bedrock-openai", catalog.Place{Region: "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"},
		{"vertex", catalog.Place{Project: "p", Location: "asia-east1"}, "https://asia-east1-aiplatform.googleapis.com/v1/projects/p/locations/asia-east1/publishers/google"},
		{"vertex", catalog.Place{Project: "p", Location: "global"}, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google"},
		{"vertex", catalog.Place{Project: "p", Location: "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google"},
	} {
		v, _ := catalog.Named(tt.name)
		if got, err := v.Address(tt.at); got != tt.want || err != nil {
			t.Errorf("%s %+v: %s, %v", tt.name, tt.at, got, err)
		}
	}
}

// A project may be of a domain; nothing else may.
func TestScopedProjects(t *testing.T) {
	v, _ := catalog.Named("vertex")
	for project, fine := range map[string]bool{
		"example.com:my-project": true, "a.b.example.com:p-1": true, "my-project": true,
		"example.com": false, "example.com:": false, ":p": false, "a..b:p": false, "..:p": false, "a:b:c": false, "example.com:p/x": false, "exa mple.com:p": false,
	} {
		got, err := v.Address(catalog.Place{Project: project, Location: "global"})
		if (err == nil) != fine || fine && !strings.Contains(got, "/projects/"+project+"/") {
			t.Errorf("%q: %q, %v", project, got, err)
		}
	}
	if got, err := v.Address(catalog.Place{Project: "p", Location: "example.com:l"}); err == nil {
		t.Errorf("a location of a domain: %s", got)
	}
}

// A vendor's own variables stand in place of the usual ones.
func TestVariablesOfVendors(t *testing.T) {
	foundry, _ := catalog.Named("azure-anthropic")
	azure, _ := catalog.Named("azure")
	if got := foundry.Variables("resource"); !slices.Equal(got, []string{"ANTHROPIC_FOUNDRY_RESOURCE", "AZURE_RESOURCE_NAME"}) {
		t.Errorf("%q", got)
	}
	if got := azure.Variables("resource"); !slices.Equal(got, catalog.Variables("resource")) {
		t.Errorf("%q", got)
	}
}

// What would make another address of it is refused, by the name of the part: a key is sent
// there.
func TestAddressRefuses(t *testing.T) {
	v, _ := catalog.Named("azure")
	for _, resource := range []string{"", "evil.com/", "evil.com#", "a.b", "me@evil", "a b", "ä", "{region}", "..", "a:1", strings.Repeat("a", 64)} {
		got, err := v.Address(catalog.Place{Resource: resource})
		if !errors.Is(err, catalog.ErrPart) || !strings.Contains(err.Error(), "azure: its resource ") {
			t.Errorf("%q: %q, %v", resource, got, err)
		}
		var part *catalog.PartError
		if !errors.As(err, &part) || part.Part != "resource" || part.Value != resource {
			t.Errorf("%q: %+v", resource, part)
		}
	}
	if _, err := catalog.For("generic", "").Address(catalog.Place{}); !errors.Is(err, catalog.ErrNoAddress) {
		t.Errorf("generic: %v", err)
	}
}

// What an address needs can be asked for, and looked for in the environment.
func TestNeeds(t *testing.T) {
	for name, want := range map[string][]string{
		"openai": nil, "generic": nil, "azure": {"resource"}, "bedrock": {"region"}, "vertex": {"project", "location"},
	} {
		v, _ := catalog.Named(name)
		if got := v.Needs(); !slices.Equal(got, want) {
			t.Errorf("%s needs %q, want %q", name, got, want)
		}
		for _, part := range want {
			if len(catalog.Variables(part)) == 0 {
				t.Errorf("no variable has the %s", part)
			}
		}
	}
	if got := catalog.Variables("planet"); got != nil {
		t.Errorf("the planet is in %q", got)
	}
}

// Every vendor answers at its own address, also at one next to another vendor's: a key is sent
// there without being asked about. No vendor answers elsewhere, and servers of one's own have
// no address that is theirs alone.
func TestAnswersAtItsOwnAddress(t *testing.T) {
	at := catalog.Place{Region: "eu-west-1", Project: "p", Location: "asia-east1", Resource: "acme"}
	for _, v := range catalog.Rows() {
		if base, err := v.Address(at); err == nil && v.Answers(base) == v.Local {
			t.Errorf("%s (local: %v): answers at %s: %v", v.Name, v.Local, base, v.Local)
		}
		for _, elsewhere := range []string{"", "://", "https://example.test/v1", "https://acme.example.test", "http://127.0.0.1:8080/v1", "https://bedrock-runtime.mine.s3.amazonaws.com"} {
			if v.Answers(elsewhere) {
				t.Errorf("%s answers at %q", v.Name, elsewhere)
			}
		}
	}
}

// The older addresses of Azure are on all hosts of Azure's, and take the same key.
func TestAnswersWhereItsKeyIsTaken(t *testing.T) {
	for name, at := range map[string]string{
		"azure-deployments": "https://acme.cognitiveservices.azure.com/openai",
		"bedrock-openai":    "https://bedrock-runtime-fips.us-east-1.amazonaws.com/openai/v1",
		"generic":           "https://api.openai.com/v1",
		"zai":               "https://open.bigmodel.cn/api/paas/v4",
	} {
		if v, _ := catalog.Named(name); !v.Answers(at) {
			t.Errorf("%s does not answer at %s", name, at)
		}
	}
	for name, at := range map[string]string{
		"groq":   "https://api.openai.com/v1",
		"zai-cn": "https://api.z.ai/api/paas/v4", // which does not take a key of ZHIPUAI_API_KEY
	} {
		if v, _ := catalog.Named(name); v.Answers(at) {
			t.Errorf("%s answers at %s", name, at)
		}
	}
}

// A part of a host's name is a region of AWS or a location of Google Cloud, and not the rest of
// somebody's bucket: the key would go to the owner of the bucket.
func TestBucketsAreNotTheirs(t *testing.T) {
	for host, name := range map[string]string{
		"bedrock-runtime.eu-west-1.amazonaws.com":           "bedrock",
		"bedrock-runtime.us-gov-west-1.amazonaws.com":       "bedrock",
		"bedrock-runtime-fips.us-east-2.amazonaws.com":      "bedrock",
		"bedrock-runtime.cn-north-1.amazonaws.com.cn":       "bedrock",
		"bedrock-runtime.eusc-de-east-1.amazonaws.com":      "bedrock",
		"bedrock-mantle.ap-southeast-2.api.aws":             "bedrock-anthropic",
		"runtime.sagemaker.us-west-2.amazonaws.com":         "sagemaker",
		"europe-west4-aiplatform.googleapis.com":            "vertex",
		"northamerica-northeast1-aiplatform.googleapis.com": "vertex",
		"aiplatform.eu.rep.googleapis.com":                  "vertex",
		"aiplatform.me-central2.rep.googleapis.com":         "vertex",

		"bedrock-runtime.s3.amazonaws.com":                   "generic",
		"bedrock-runtime-fips.s3.amazonaws.com":              "generic",
		"bedrock-runtime.s3-eu-west-1.amazonaws.com":         "generic",
		"bedrock-runtime.s3-website-eu-west-1.amazonaws.com": "generic",
		"bedrock-runtime.s3.amazonaws.com.cn":                "generic",
		"bedrock-runtime.s3.eu-west-1.amazonaws.com":         "generic",
		"bedrock-mantle.s3.api.aws":                          "generic",
		"runtime.sagemaker.s3.amazonaws.com":                 "generic",
		"runtime.sagemaker.s3-us-west-2.amazonaws.com":       "generic",
		"my.storage-aiplatform.googleapis.com":               "generic",
		"my_own-aiplatform.googleapis.com":                   "generic",
		"aiplatform.storage.us-east1.rep.googleapis.com":     "generic",
		"bedrock-runtime..amazonaws.com":                     "generic",
	} {
		if got := catalog.For("", "https://"+host); got.Name != name {
			t.Errorf("%s is of %s, want %s", host, got.Name, name)
		}
		for _, v := range catalog.Rows() {
			if name == "generic" && v.Answers("https://"+host) {
				t.Errorf("%s answers at %s", v.Name, host)
			}
		}
	}
}
