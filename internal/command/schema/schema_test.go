package schema

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// saved writes files into a new folder and returns the path of the first one, s.json.
func saved(t *testing.T, schema string, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(more); i += 2 {
		path := filepath.Join(dir, more[i])
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(more[i+1]), 0o600))
	}
	path := filepath.Join(dir, "s.json")
	must.Do(t, os.WriteFile(path, []byte(schema), 0o600))
	return path
}

func loaded(t *testing.T, schema string, more ...string) *Schema {
	t.Helper()
	return must.Get(Load(saved(t, schema, more...)))(t)
}

const person = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0},
	"mail":{"anyOf":[{"type":"string","pattern":"^[a-z]+@[a-z]+$"},{"type":"null"}]}},"required":["name","age"],"additionalProperties":false}`

// One line names the faults of an answer by their places. An answer that fits has none.
func TestCheckText(t *testing.T) {
	s := loaded(t, person)
	for text, want := range map[string]string{
		`{"name":"Ada","age":36}`:                         "",
		`{"name":"Ada","age":36.0,"mail":null}`:           "",
		`{"name":"Ada","age":"36"}`:                       "at /age: got string, want integer",
		`{"name":"Ada"}`:                                  "at /: missing property 'age'",
		`{"age":-1}`:                                      "at /: missing property 'name'; at /age: minimum: got -1, want 0",
		`{"name":1,"age":2,"x":3,"y":4}`:                  "at /: additional properties 'x', 'y' not allowed; at /name: got number, want string",
		`{"name":"A","age":1,"mail":7}`:                   "at /mail: 'anyOf' failed (got number, want string)",
		`{"name":"A","age":1,"mail":{"q":{"y":1,"x":2}}}`: "at /mail: 'anyOf' failed (got object, want string)",
		`[]`:                             "at /: got array, want object",
		`Sure! {"name":"Ada","age":36}`:  "the answer is not JSON: invalid character 'S' looking for beginning of value",
		`{"name":"Ada","age":36} I hope`: "the answer is not JSON: something follows the value",
		`{"name":"Ada","ag`:              "the answer is not JSON: it ends too early",
		``:                               "the answer is not JSON: it ends too early",
	} {
		for range 20 { // the order of a map's members is another one each time
			if got := said(s.CheckText([]byte(text))); got != want {
				t.Fatalf("%s:\n  %s\nwant\n  %s", text, got, want)
			}
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Drafts differ in what keywords mean: a schema that names its draft is read by it, and any other by
// 2020-12.
func TestDrafts(t *testing.T) {
	const tuple = `"items":[{"type":"string"}],"additionalItems":false`
	for schema, c := range map[string]struct{ fits, not string }{
		`{"$schema":"http://json-schema.org/draft-07/schema#",` + tuple + `}`:                                                          {`["a"]`, `["a",1]`},
		`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`:                                                        {`"2026-01-31"`, `"31st"`},
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"number","maximum":3,"exclusiveMaximum":true}`:                    {`2`, `3`},
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}],"items":false}`:                   {`["a"]`, `["a",1]`},
		`{"prefixItems":[{"type":"string"}],"items":false,"format":"date"}`:                                                            {`["31st"]`, `[1]`},
		`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"additionalProperties":false}},"$ref":"#/$defs/n"}`: {`{"next":{"next":{}}}`, `{"next":{"x":1}}`},
		`true`:  {`1`, ``},
		`false`: {``, `1`},
	} {
		s := loaded(t, schema)
		if err := s.CheckText([]byte(c.fits)); c.fits != "" && err != nil {
			t.Errorf("%s: %s: %v", schema, c.fits, err)
		}
		if c.not != "" && s.CheckText([]byte(c.not)) == nil {
			t.Errorf("%s takes %s", schema, c.not)
		}
	}
}

// A schema may refer to files in its folder and below, and to nothing else: no connection is made,
// and no file elsewhere is opened, also not through a link.
func TestReferences(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "secret.json")
	must.Do(t, os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600))

	s := loaded(t, `{"$ref":"parts/part.json"}`, "parts/part.json", `{"$ref":"../with%20space.json#/$defs/x"}`, "with space.json", `{"$defs":{"x":{"type":"string"}}}`)
	if s.CheckText([]byte(`"a"`)) != nil || s.CheckText([]byte(`1`)) == nil {
		t.Error("files in the folder are not read")
	}
	for ref, want := range map[string]string{
		server.URL + "/s.json":               "nothing is fetched",
		"https://json.example.com/s.json":    "nothing is fetched",
		"ftp://example.com/s.json":           "nothing is fetched",
		"file://example.com/s.json":          "nothing is fetched",
		"none.json":                          "no such file",
		"../secret.json":                     "no such file",
		"file://" + filepath.ToSlash(secret): "no such file",
		"link.json":                          "escapes",
		"%2e%2e/" + filepath.Base(secret):    "escapes",
		"..%2f..%2f..%2f..%2fetc%2fpasswd":   "escapes",
		"#/$defs/none":                       "none",
		"broken.json":                        "broken.json: it is not JSON",
		"data:application/json,%7B%7D":       "nothing is fetched",
	} {
		path := saved(t, fmt.Sprintf(`{"$ref":%q}`, ref), "broken.json", "{")
		must.Do(t, os.Symlink(secret, filepath.Join(filepath.Dir(path), "link.json")))
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", ref, err, want)
		}
	}
	if asked > 0 {
		t.Errorf("%d requests were made", asked)
	}
}

// A file that is no schema, or no useful one, is refused in words that say why.
func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                     "it is not JSON: it ends too early",
		`{"type":"object"`:                     "it is not JSON: it ends too early",
		`{} {}`:                                "something follows",
		`[]`:                                   "a schema is a JSON object",
		`7`:                                    "a schema is a JSON object",
		`{"type":"strin"}`:                     "it is not a schema: at /type",
		`{"required":"name"}`:                  "it is not a schema: at /required: got string, want array",
		`{"pattern":"(?=x)"}`:                  "look neither ahead nor behind",
		`{"pattern":"(?<!x)y"}`:                "look neither ahead nor behind",
		`{"pattern":"\\u0041"}`:                "are regular expressions of Go",
		`{"$ref":"#"}`:                         "in a circle",
		`{"$schema":"https://x.example/meta"}`: "nothing is fetched",
		`{"name":"p","strict":true,"schema":{"type":"object"}}`:             `it holds a schema in "schema"`,
		`{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`: `it holds a schema in "json_schema"`,
		`{"name":"p","input_schema":{"type":"object"}}`:                     `it holds a schema in "input_schema"`,
	} {
		if _, err := Load(saved(t, text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "file://") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("there is no such file")
	}
	for _, fine := range []string{`{}`, `{"type":"object","properties":{"schema":{"type":"object"}}}`} {
		if _, err := Load(saved(t, fine)); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

// A hostile answer is refused in a moment, with a short line.
func TestHostileAnswers(t *testing.T) {
	s := loaded(t, `{"$defs":{"n":{"uniqueItems":true,"multipleOf":0.1,"maximum":1e300,"items":{"$ref":"#/$defs/n"},"additionalProperties":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}`)
	for name, text := range map[string]string{
		"deep lists":     strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"deep objects":   strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
		"not closed":     strings.Repeat("[", 1_000_000),
		"huge":           `1e999999999`,
		"tiny":           `1e-999999999`,
		"zeros":          `1e0000000999999999`,
		"long":           strings.Repeat("9", 1_000_000),
		"overflow":       `1e99999999999999999999`,
		"in a list":      `[1,2,{"a":[1e5000]}]`,
		"many faults":    "[" + strings.Repeat("0.01,", 100_000) + "0.02]",
		"a long name":    `{"` + strings.Repeat("x", 1_000_000) + `":0.01}`,
		"faults below":   `{"` + strings.Repeat("x", 1_000_000) + `":[` + strings.Repeat("0.01,", 2000) + `0]}`,
		"escapes":        `{"\u001b[31m\n":0.01}`,
		"half character": `{"\ud800":0.01}`,
	} {
		err := s.CheckText([]byte(text))
		if err == nil || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %.2000v", name, err)
		}
	}
	anything := loaded(t, `true`)
	for _, text := range []string{strings.Repeat("9", maxNumber+1), "0." + strings.Repeat("9", maxNumber), `1e401`, `[[-1e-00401]]`} {
		if anything.CheckText([]byte(text)) == nil {
			t.Errorf("%.40s is taken", text)
		}
	}
	for _, fine := range []string{`1e300`, `[0.1,0.2]`, strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1)} {
		if err := s.CheckText([]byte(fine)); err != nil {
			t.Errorf("%.40s: %v", fine, err)
		}
	}
}

// The answer is the words of a body in any dialect, also in a fence, or else the arguments of its only
// call of a tool.
func TestAnswersOfDialects(t *testing.T) {
	s := loaded(t, person)
	const ada = `{\"name\":\"Ada\",\"age\":36}`
	const raw = `{"name":"Ada","age":36}`
	fits := map[string]string{
		"chat":          `{"choices":[{"message":{"role":"assistant","content":"` + ada + `"}}]}`,
		"fence":         `{"choices":[{"message":{"content":"` + "```json\\n" + ada + "\\n```" + `\n"}}]}`,
		"parts":         `{"choices":[{"message":{"content":[{"type":"text","text":"` + ada + `"}]}}]}`,
		"chat tool":     `{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"` + ada + `"}}]}}]}`,
		"completion":    `{"choices":[{"text":" ` + ada + `"}]}`,
		"response":      `{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"` + ada + `"}]}]}`,
		"response tool": `{"output":[{"type":"function_call","arguments":"` + ada + `"}]}`,
		"claude":        `{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"` + ada + `"}]}`,
		"claude tool":   `{"content":[{"type":"tool_use","input":` + raw + `}]}`,
		"server's tool": `{"content":[{"type":"server_tool_use","input":{}},{"type":"tool_use","input":` + raw + `}]}`,
		"gemini":        `{"candidates":[{"content":{"parts":[{"text":"` + ada + `"}]}}]}`,
		"gemini tool":   `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":` + raw + `}}]}}]}`,
		"converse":      `{"output":{"message":{"content":[{"text":"` + ada + `"}]}}}`,
		"converse tool": `{"output":{"message":{"content":[{"toolUse":{"input":` + raw + `}}]}}}`,
	}
	for name, body := range fits {
		if err := s.Check(&provider.Reply{Body: []byte(body)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		bad := strings.ReplaceAll(body, "36", "-36")
		if err := s.Check(&provider.Reply{Body: []byte(bad)}); said(err) != "at /age: minimum: got -36, want 0" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for body, want := range map[string]string{
		`{"choices":[{"message":{"content":null}}]}`:                                           "the answer has no words",
		`{"choices":[{"message":{"refusal":"I cannot."}}]}`:                                    "the answer is not JSON",
		`{"data":[{"embedding":[1]}]}`:                                                         "the answer has no words",
		`{"content":[{"type":"tool_use","input":` + raw + `},{"type":"tool_use","input":{}}]}`: "the answer has no words, but 2 calls of tools",
		`[]`: "the answer has no words",
		``:   "the answer has no words",
	} {
		if err := s.Check(&provider.Reply{Body: []byte(body)}); !strings.HasPrefix(said(err), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	cut := provider.Reply{Body: []byte(`{"choices":[{"message":{"content":"{\"name\":\"A"}}]}`), Finish: "length"}
	if got := said(s.Check(&cut)); got != "the answer was cut off at its length limit: the answer is not JSON: it ends too early" {
		t.Error(got)
	}
}

// BenchmarkCheck measures what a run pays for each answer.
func BenchmarkCheck(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "s.json")
	if err := os.WriteFile(path, []byte(person), 0o600); err != nil {
		b.Fatal(err)
	}
	s, err := Load(path)
	if err != nil {
		b.Fatal(err)
	}
	reply := provider.Reply{Body: []byte(`{"choices":[{"message":{"role":"assistant","content":"{\"name\":\"Ada\",\"age\":36}"}}]}`)}
	for b.Loop() {
		if s.Check(&reply) != nil {
			b.Fatal("it fits")
		}
	}
}

// Whatever stands in a body, there is one short and printable line about it, and the same one each time.
func FuzzCheck(f *testing.F) {
	path := filepath.Join(f.TempDir(), "s.json")
	if err := os.WriteFile(path, []byte(person), 0o600); err != nil {
		f.Fatal(err)
	}
	s, err := Load(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range []string{
		`{"choices":[{"message":{"content":"{\"name\":\"Ada\",\"age\":36}"}}]}`, `{"content":[{"type":"tool_use","input":{"age":1e401}}]}`,
		`{"output":{"message":{"content":[{"toolUse":{"input":{"mail":[]}}}]}}}`, `{"candidates":[{"content":{"parts":[{"functionCall":{"args":"x"}}]}}]}`,
		`{"output":[{"type":"function_call","arguments":"{\"\\u001b\":1}"}]}`, `{"choices":[{"message":{"content":"` + "```\\n[]\\n```" + `"}}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return // no client passes it on
		}
		reply := provider.Reply{Body: body}
		first, second := said(s.Check(&reply)), said(s.Check(&reply))
		if first != second || len(first) > 1000 || strings.ContainsFunc(first, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%q, and then %q", first, second)
		}
	})
}
