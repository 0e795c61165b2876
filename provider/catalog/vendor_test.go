package catalog_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/wire"
)

// A vendor is known by name, else by its host. A server at one's own address is local, and any
// other is generic.
func TestFor(t *testing.T) {
	for _, tt := range []struct{ name, base, want string }{
		{"", "", "openai"},
		{"auto", "", "openai"},
		{"Groq", "", "groq"},
		{"openai", "http://127.0.0.1:8080/v1", "openai"},
		{"auto", "https://api.openai.com/v1", "openai"},
		{"auto", "https://API.OpenAI.com./v1", "openai"},
		{"auto", "https://eu.api.openai.com/v1", "openai"},
		{"auto", "https://evilapi.openai.com.example.com/v1", "generic"},
		{"auto", "https://myapi.groq.com.evil/v1", "generic"},
		{"auto", "https://notopenrouter.ai/v1", "generic"},
		{"auto", "https://me.openai.azure.com/openai/v1", "azure"},
		{"auto", "https://me.services.ai.azure.com/openai/v1", "azure"},
		{"auto", "https://api.anthropic.com/v1", "anthropic"},
		{"auto", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini"},
		{"auto", "https://aiplatform.googleapis.com/v1/projects/p", "vertex"},
		{"auto", "https://us-central1-aiplatform.googleapis.com/v1/projects/p", "vertex"},
		{"auto", "https://aiplatform.eu.rep.googleapis.com/v1/projects/p", "vertex"},
		{"auto", "https://api.groq.com/openai/v1", "groq"},
		{"auto", "https://api.together.xyz/v1", "together"},
		{"auto", "https://openrouter.ai/api/v1", "openrouter"},
		{"auto", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "bedrock"},
		{"auto", "https://bedrock-.amazonaws.com/v1", "generic"},
		{"auto", "https://bedrock-runtime.eu-west-1.amazonaws.com.evil/v1", "generic"},
		{"auto", "http://localhost:11434/v1", "local"},
		{"auto", "http://127.0.0.1:8000/v1", "local"},
		{"auto", "http://[::1]:8000/v1", "local"},
		{"auto", "http://[fe80::1%25eth0]:8000/v1", "local"},
		{"auto", "http://10.1.2.3/v1", "local"},
		{"auto", "http://192.168.0.7:8000/v1", "local"},
		{"auto", "http://172.32.0.1/v1", "generic"},
		{"auto", "http://vllm:8000/v1", "local"},
		{"auto", "http://gpu.local:8000/v1", "local"},
		{"auto", "https://llm.example.com/v1", "generic"},
		{"auto", "://", "generic"},
		{"nobody", "http://vllm:8000/v1", "local"},
	} {
		if got := catalog.For(tt.name, tt.base); got.Name != tt.want || got.Local != (tt.want == "local") {
			t.Errorf("%s %s: %s (local: %v), want %s", tt.name, tt.base, got.Name, got.Local, tt.want)
		}
	}
}

// A vendor that has ended is no vendor, and the reason is found by its name and by its host.
func TestEnded(t *testing.T) {
	for _, tt := range []struct {
		name, base string
		ends       bool
	}{
		{"github-models", "", true},
		{"GitHub-Models", "", true},
		{"", "https://models.github.ai/inference", true},
		{"", "https://MODELS.github.ai.", true},
		{"", "https://models.inference.ai.azure.com", true},
		{"openai", "https://api.openai.com/v1", false},
		{"", "https://models.github.ai.example.com", false},
		{"", "://", false},
		{"", "", false},
	} {
		if why := catalog.Ended(tt.name, tt.base); (why != "") != tt.ends {
			t.Errorf("%q at %q: %q", tt.name, tt.base, why)
		}
	}
	if _, known := catalog.Named("github-models"); known {
		t.Error("a vendor that has ended has a row")
	}
}

// A row that names its operations names some of its dialect's.
func TestServes(t *testing.T) {
	for _, v := range catalog.Rows() {
		if got := wire.Served(v.Dialect, v.Serves...); v.Serves != nil && !slices.Equal(got, v.Serves) {
			t.Errorf("%s serves %q, of which its dialect has %q", v.Name, v.Serves, got)
		}
	}
}

// Each charges by its own rule.
func TestCharge(t *testing.T) {
	for _, tt := range []struct {
		name         string
		bound, draws float64
	}{
		{"openai", 0, 0},
		{"openai", 100, 95}, // the greater of both, as a sum
		{"openai", 2, 0},
		{"generic", 100, 95},
		{"vllm", 100, 95},
		{"bedrock", 100, 100},
		{"bedrock", 0, 4096},
		{"cerebras", 0, 16384},
		{"anthropic", 64000, limiter.ExpectedOutput},
		{"anthropic", 50, 50},
		{"anthropic", 0, limiter.ExpectedOutput},
		{"gemini", 100, 0},
	} {
		v := catalog.For(tt.name, "")
		got := v.Charge.Of(limiter.Cost{Requests: 1, Input: 5, Output: tt.bound})
		if want := (limiter.Cost{Requests: 1, Input: 5, Output: tt.draws}); got != want {
			t.Errorf("%s with a bound of %v: %+v, want %+v", tt.name, tt.bound, got, want)
		}
	}
}

// Each row says who it is and how it is reached, in words that the command can take.
func TestRows(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	variableName := regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	for _, v := range catalog.Rows() {
		if _, spoken := all.Named(v.Dialect.Name()); !name.MatchString(v.Name) || v.Title == "" || !spoken {
			t.Errorf("%q, %q, dialect %v", v.Name, v.Title, v.Dialect)
		}
		if got, ok := catalog.Named(strings.ToUpper(v.Name)); !ok || got.Name != v.Name {
			t.Errorf("%s is not found by its name: %q", v.Name, got.Name)
		}
		for _, key := range v.Keys {
			if !variableName.MatchString(key) {
				t.Errorf("%s: variable %q", v.Name, key)
			}
		}
		if _, err := time.Parse(time.DateOnly, v.Day); (v.Source != "") != (v.Day != "") || v.Day != "" && err != nil {
			t.Errorf("%s: of %q on %q: %v", v.Name, v.Source, v.Day, err)
		}
		for _, token := range v.Bearers {
			if !slices.Contains(v.Keys, token) {
				t.Errorf("%s: the token in %s is not among its keys", v.Name, token)
			}
		}
		for variable, header := range v.Headers {
			if !variableName.MatchString(variable) || header == "" {
				t.Errorf("%s: %s in %q", v.Name, variable, header)
			}
		}
		if needsKey := v.Auth != catalog.None && v.Auth != catalog.Google && v.Name != "sagemaker"; needsKey != (len(v.Keys) > 0) {
			t.Errorf("%s: %v with keys %q", v.Name, v.Auth, v.Keys)
		}
		if (v.Auth == catalog.AWS) != (v.Service != "") {
			t.Errorf("%s: %v signs for %q", v.Name, v.Auth, v.Service)
		}
		if v.Auth > catalog.None || v.InFlight < 0 || v.Timeout < 0 || v.StreamOver < 0 || v.Charge.Rule == limiter.ChargeAsGiven {
			t.Errorf("%s: %+v", v.Name, v)
		}
		if err := errors.Join(v.Charge.Validate(), v.Periods.Validate()); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// A row is data that can be seen at once.
func TestRowsAreShort(t *testing.T) {
	const most = 12 // lines
	rows := 0
	for _, name := range []string{"rows.go", "rows_hosts.go"} {
		set := token.NewFileSet()
		file := must.Get(parser.ParseFile(set, name, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			list, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			of, ok := list.Type.(*ast.ArrayType)
			if !ok || fmt.Sprint(of.Elt) != "Vendor" {
				return true
			}
			for _, row := range list.Elts {
				rows++
				if lines := set.Position(row.End()).Line - set.Position(row.Pos()).Line + 1; lines > most {
					t.Errorf("%v: a row of %d lines, want at most %d", set.Position(row.Pos()), lines, most)
				}
			}
			return false
		})
	}
	if rows != len(catalog.Rows()) {
		t.Errorf("%d rows were looked at, of %d", rows, len(catalog.Rows()))
	}
}

// FuzzFor: no base URL is too strange, and whose it is does not depend on how it is written.
func FuzzFor(f *testing.F) {
	for _, base := range []string{"", "://", "https://api.openai.com/v1", "http://[fe80::1%25eth0]:8000/v1", "https://x-aiplatform.googleapis.com.", "*"} {
		f.Add(base)
	}
	f.Fuzz(func(t *testing.T, base string) {
		v := catalog.For("", base)
		if v.Name == "" {
			t.Errorf("%q is nobody's", base)
		}
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
			return
		}
		u.Host = strings.ToUpper(u.Host)
		if w := catalog.For("", u.String()); w.Name != v.Name {
			t.Errorf("%q is %s, and in capitals %s", base, v.Name, w.Name)
		}
	})
}

// Names are in order and there is one of each, so that a message can list them.
func TestNames(t *testing.T) {
	names := catalog.Names()
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(catalog.Rows()) || len(names) < 30 {
		t.Errorf("%d: %q", len(names), names)
	}
	if _, ok := catalog.Named("nobody"); ok {
		t.Error("nobody is a vendor")
	}
}

// A host belongs to one vendor: all answers from it mean the same by their words.
func TestHostsDoNotOverlap(t *testing.T) {
	for _, v := range catalog.Rows() {
		for _, of := range v.Hosts {
			host := strings.NewReplacer("{region}", "eu-west-1", "{location}", "europe-west4").Replace(of)
			if got := catalog.For("", "https://"+host+"/v1"); got.Name != v.Name {
				t.Errorf("%s of %s is taken for %s", host, v.Name, got.Name)
			}
			for _, w := range catalog.Rows() {
				if w.Name == v.Name {
					continue
				}
				for _, other := range w.Hosts {
					if strings.HasSuffix(host, "."+other) || host == other {
						t.Errorf("%s of %s is below %s of %s", host, v.Name, other, w.Name)
					}
				}
			}
		}
	}
}

// Bases are URLs once their placeholders are filled in, and lie on a host of whom they are,
// or of another door to it.
func TestBases(t *testing.T) {
	places := []catalog.Place{
		{Region: "eu-west-1", Project: "p-1", Location: "europe-west4", Resource: "me"},
		{Region: "us-east-1", Project: "p", Location: "global", Resource: "me"},
		{Region: "us-east-1", Project: "p", Location: "us", Resource: "me"},
		{Region: "us-east-1", Project: "p", Location: "eu", Resource: "me"},
		{Region: "cn-north-1", Project: "p", Location: "us-east5", Resource: "me"},
	}
	for _, v := range catalog.Rows() {
		for _, at := range places {
			base, err := v.Address(at)
			if v.Base == "" {
				if err == nil {
					t.Errorf("%s has the address %s", v.Name, base)
				}
				continue
			}
			u, parsed := url.Parse(base)
			if err != nil || parsed != nil {
				t.Fatalf("%s: %v, %v", v.Name, err, parsed)
			}
			secure := u.Scheme == "https" || v.Local && u.Scheme == "http"
			if !secure || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.ContainsAny(base, "{}") || strings.HasSuffix(base, "/") {
				t.Errorf("%s: %s", v.Name, base)
			}
			if v.Answers(base) == v.Local {
				t.Errorf("%s: %s is its own: %v", v.Name, base, v.Local)
			}
			whose := catalog.For("", base)
			if v.Local {
				if whose.Name != "local" {
					t.Errorf("%s: %s is %s", v.Name, base, whose.Name)
				}
			} else if len(v.Hosts) > 0 && whose.Name != v.Name || whose.Name == "generic" {
				t.Errorf("%s: %s is taken for %s", v.Name, base, whose.Name)
			}
		}
		if strings.Contains(v.Path, "{") != (strings.Contains(v.Path, "{path}") || strings.Contains(v.Path, "{model}")) {
			t.Errorf("%s: path %s", v.Name, v.Path)
		}
	}
}
