package prompts

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

func params(t *testing.T, texts ...string) (all []Param) {
	t.Helper()
	for _, text := range texts {
		p := must.Get(ParseParam(text))(t)
		all = append(all, p)
	}
	return all
}

// A column with a parameter's name is sent, as JSON has it; any other column comes back as metadata. A cell
// that cannot be such a value fails its row.
func TestColumnsOfParametersAreSent(t *testing.T) {
	const text = "prompt,max_tokens,temperature,stop,logprobs,response_format,user,n\n" +
		`q,50, 0.20 ,5,TRUE,"{""type"":""json_object""}",ann,7` + "\n" +
		"r,,,,,,,\n" +
		"s,many,,,,,,\n" +
		`t,,,"[""a"",""b""]",2,,,` + "\n" +
		"u,,,,maybe,,,\n" +
		"v,1e999x,,,,,,\n"
	reqs, bad := read(t, text, Config{DefaultModel: "m", Format: FormatCSV})
	want := []string{
		`{"model":"m","messages":[{"role":"user","content":"q"}],"logprobs":true,"max_tokens":50,"response_format":{"type":"json_object"},"stop":"5","temperature":0.20}`,
		`{"model":"m","messages":[{"role":"user","content":"r"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"t"}],"logprobs":2,"stop":["a","b"]}`,
	}
	if !slices.Equal(bodies(reqs), want) || string(reqs[0].Metadata) != `{"n":"7","user":"ann"}` {
		t.Errorf("%q\n%s", bodies(reqs), reqs[0].Metadata)
	}
	if len(bad) != 3 || bad[0].Reason != `max_tokens is "many", not a number` || bad[1].Reason != `logprobs is "maybe", not true or false` || !errors.Is(bad[2], ErrShape) {
		t.Error(bad)
	}
}

// A column called metadata is data like any other: a cell is no object.
func TestAColumnOfMetadataIsData(t *testing.T) {
	req := one(t, "prompt,metadata,url\nq,x,u\n", Config{DefaultModel: "m", Format: FormatCSV})
	if string(req.Metadata) != `{"metadata":"x","url":"u"}` {
		t.Errorf("%s", req.Metadata)
	}
}

// With a template everything but id and custom_id is data, of objects and of rows: neither a model nor a
// system message nor a parameter is taken from it. Its metadata come back, if they are an object.
func TestWithATemplateAllIsData(t *testing.T) {
	tmpl := must.Get(ParseTemplate(`{{.model}} by {{.system}}, {{.max_tokens}}`))(t)
	cfg := Config{DefaultModel: "m", System: "be kind", Template: tmpl, Params: params(t, "max_tokens=9")}
	const want = `{"model":"m","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"T1 by Ford, 5"}],"max_tokens":9}`
	got := one(t, `{"custom_id":"a","model":"T1","system":"Ford","max_tokens":5,"metadata":{"k":1}}`, cfg)
	if string(got.Body) != want || got.ID != "a" || string(got.Metadata) != `{"k":1}` {
		t.Errorf("%+v %s", got, got.Body)
	}
	if got = one(t, `{"model":"T1","system":"Ford","max_tokens":5,"metadata":"text"}`, cfg); string(got.Body) != want || got.Metadata != nil {
		t.Errorf("%+v %s", got, got.Body)
	}
	cfg.Format = FormatCSV
	if got = one(t, "id,model,system,max_tokens,metadata\nb,T1,Ford,5,x\n", cfg); string(got.Body) != want || got.ID != "b" || got.Metadata != nil {
		t.Errorf("%+v %s", got, got.Body)
	}
}

// A parameter for all lines is sent with each line that does not say it, whatever its form: a line's own wins.
// Native batch lines name theirs elsewhere, and are refused.
func TestParamsAreSentWithAllLines(t *testing.T) {
	cfg := Config{DefaultModel: "m", Params: params(t, "max_tokens=50", "stop=END", "x=[1]"), Serves: Operations()}
	for line, want := range map[string]string{
		`{"prompt":"q"}`:                                          `{"model":"m","messages":[{"role":"user","content":"q"}],"max_tokens":50,"stop":"END","x":[1]}`,
		`{"prompt":"q","max_tokens":1}`:                           `{"model":"m","messages":[{"role":"user","content":"q"}],"max_tokens":1,"stop":"END","x":[1]}`,
		`{"messages":[],"model":"own","id":"a"}`:                  `{"max_tokens":50,"stop":"END","x":[1],"messages":[],"model":"own"}`,
		`{"body":{ "model":"own","stop":null}}`:                   `{"max_tokens":50,"x":[1],"model":"own","stop":null}`,
		`{"body":{"messages":[]}}`:                                `{"model":"m","max_tokens":50,"stop":"END","x":[1],"messages":[]}`,
		`{"body":{}}`:                                             `{"model":"m","max_tokens":50,"stop":"END","x":[1]}`,
		`{"params":{"model":"c","max_tokens":1,"stop":[]}}`:       `{"x":[1],"model":"c","max_tokens":1,"stop":[]}`,
		`{"body":{"model":"c","max_tokens":1,"stop":[] , "x":2}}`: `{"model":"c","max_tokens":1,"stop":[] , "x":2}`,
	} {
		if got := one(t, line, cfg); string(got.Body) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", line, got.Body, want)
		}
	}
	_, bad := read(t, `{"request":{"contents":[]}}`+"\n"+`{"modelInput":{"messages":[]}}`, cfg)
	if len(bad) != 2 || !strings.Contains(bad[0].Reason, "max_tokens is set for all lines") || !errors.Is(bad[1], ErrUnsupported) {
		t.Error(bad)
	}
}

// A parameter is a name and a value: JSON where it reads as such, else a string. What a line says in another
// way is refused, and the way is named.
func TestParseParam(t *testing.T) {
	for text, want := range map[string]string{
		"temperature=0.20": "0.20", "user=ann": `"ann"`, `user="7"`: `"7"`, "n=2": "2", "store=false": "false", "stop=5": `"5"`, "x=": `""`, "x=a=b": `"a=b"`,
		`response_format={"type": "json_object"}`: `{"type": "json_object"}`, "x={": `"{"`,
	} {
		if p, err := ParseParam(text); err != nil || string(p.Value) != want {
			t.Errorf("%s: %s, %v, want %s", text, p.Value, err, want)
		}
	}
	for text, want := range map[string]string{
		"max_tokens": "want NAME=VALUE", "=5": "want NAME=VALUE", "max_tokens=many": `max_tokens is "many", not a number`, "model=m": "the model", "system=s": "the system message",
		"messages=[]": "a line's own", "prompt=x": "a line's own", "id=x": "a line's own", "stream=true": "a result is written whole", "a b=1": "want NAME=VALUE", "x=\xff": "UTF-8",
	} {
		if p, err := ParseParam(text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "prompts: ") {
			t.Errorf("%s: %+v, %v, want %s", text, p, err, want)
		}
	}
}
