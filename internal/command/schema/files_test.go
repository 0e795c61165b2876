package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
)

// A packed schema says of each answer what the file says, and needs none of the files. Numbers stay as they are
// written.
func TestPackedSchema(t *testing.T) {
	path := saved(t, `{"$ref":"parts/part.json"}`, "parts/part.json", `{"$ref":"../with%20space.json#/$defs/x"}`,
		"with space.json", `{"$defs":{"x":{"type":"object","properties":{"age":{"type":"integer","maximum":90071992547409931},"tag":{"const":"<b>"}},"required":["age"]}}}`,
		"unused.json", `{"type":"null"}`)
	file := must.Get(Load(path))(t)
	text := must.Get(Pack(path))(t)
	if strings.Contains(text, "unused") || strings.ContainsAny(text, "\n") || !strings.Contains(text, `"<b>"`) {
		t.Errorf("packed:\n%s", text)
	}
	must.Do(t, os.RemoveAll(filepath.Dir(path)))
	unpacked := must.Get(Unpack(text))(t)
	for _, answer := range []string{`{"age":1}`, `{"age":90071992547409931}`, `{"age":90071992547409932}`, `{}`, `{"age":"1","tag":"<i>"}`, `{"age":1,"tag":"<b>"}`, `words`} {
		if is, was := said(unpacked.CheckText([]byte(answer))), said(file.CheckText([]byte(answer))); is != was {
			t.Errorf("%s: %q, and by the file %q", answer, is, was)
		}
	}
	if err := unpacked.CheckText([]byte(`{"age":90071992547409932}`)); err == nil {
		t.Error("a number was rounded")
	}
}

// Pack refuses what Load refuses. A text that nobody has packed leads to no file of this machine.
func TestPackRefuses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	must.Do(t, os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600))
	for ref, want := range map[string]string{
		"https://json.example.com/s.json": "nothing is fetched", "none.json": "no such file", "link.json": "escapes", "%2e%2e/secret.json": "escapes",
	} {
		path := saved(t, fmt.Sprintf(`{"$ref":%q}`, ref))
		must.Do(t, os.Symlink(secret, filepath.Join(filepath.Dir(path), "link.json")))
		if _, err := Pack(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", ref, err, want)
		}
	}
	for text, want := range map[string]string{
		``:      "it is not a packed schema",
		`7`:     "it is not a packed schema",
		`{}`:    "not exist",
		`{"x":`: "it is not a packed schema",
		fmt.Sprintf(`{"file":%q,"files":{}}`, secret):                                          "not exist",
		fmt.Sprintf(`{"file":"s.json","files":{"s.json":{"$ref":"file://%s"}}}`, secret):       "not exist",
		`{"file":"s.json","files":{"s.json":{"$ref":"https://json.example.com/s.json"}}}`:      "nothing is fetched",
		`{"file":"s.json","files":{"s.json":{"type":"strin"}}}`:                                "it is not a schema",
		`{"file":"s.json","files":{"s.json":{"name":"p","schema":{"type":"object"}}}}`:         `it holds a schema in "schema"`,
		`{"file":"a/s.json","files":{"a/s.json":{"$ref":"../b.json"},"b.json":{"$ref":"#x"}}}`: "b.json",
	} {
		if _, err := Unpack(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A job brings a schema of a bounded size, and the schema of a job counts in place of a file.
func TestSchemaOfAJob(t *testing.T) {
	flags := func(schema, ofJob string) *settings.Flags {
		f := &settings.Flags{}
		f.Register(pflag.NewFlagSet("run", pflag.ContinueOnError))
		f.Schema, f.JobSchema = schema, ofJob
		return f
	}
	long := func(n int) string {
		return fmt.Sprintf(`{"type":"string","$comment":%q}`, strings.Repeat("x", n))
	}
	if text, err := OfJob(flags(saved(t, long(maxJobSchema-1000)), "")); err != nil || len(text) > maxJobSchema {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	if _, err := OfJob(flags(saved(t, `{"$ref":"b.json"}`, "b.json", long(maxJobSchema)), "")); err == nil || !strings.Contains(err.Error(), "and a job brings 262144 at most to its workers") {
		t.Errorf("a schema that is too long: %v", err)
	}
	if _, err := OfJob(flags("none.json", "")); err == nil || !strings.Contains(err.Error(), "--schema none.json: no such file") {
		t.Errorf("no file: %v", err)
	}
	if text, err := OfJob(flags("", "")); err != nil || text != "" {
		t.Errorf("without a schema: %q, %v", text, err)
	}
	text := must.Get(Pack(saved(t, `{"type":"string"}`)))(t)
	s, err := Of(flags("none.json", text))
	if err != nil || s.CheckText([]byte(`"a"`)) != nil || s.CheckText([]byte(`1`)) == nil {
		t.Errorf("the schema of a job: %v", err)
	}
	if _, err := Of(flags("", "{}")); err == nil || !strings.Contains(err.Error(), "the schema of the job: ") {
		t.Errorf("a broken one: %v", err)
	}
}
