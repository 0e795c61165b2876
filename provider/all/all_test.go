package all_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/providertest"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/wire"
)

// Every dialect has a name of its own, at least one operation, and is found by its name;
// all operations are somebody's.
func TestDialects(t *testing.T) {
	names, operations := map[string]bool{}, map[string]bool{}
	for _, e := range all.All() {
		name := e.Dialect.Name()
		if names[name] || name == "" || strings.ToLower(name) != name {
			t.Errorf("%q: twice, or no word in small letters", name)
		}
		names[name] = true
		if found, ok := all.Named(name); !ok || found.Dialect != e.Dialect {
			t.Errorf("%q is not found by its name", name)
		}
		has := false
		for _, operation := range provider.Operations() {
			path, ok := e.Dialect.Path(operation, "")
			if ok != strings.HasPrefix(path, "/") || !ok && path != "" {
				t.Errorf("%s: %s is at %q, %v", name, operation, path, ok)
			}
			operations[operation], has = operations[operation] || ok, has || ok
		}
		if !has {
			t.Errorf("%s has no operation", name)
		}
		for _, nowhere := range []string{"", "/", "https://elsewhere.example/v1/chat/completions", "/v1/chat/completions/../../keys", ":generateContents"} {
			if path, ok := e.Dialect.Path(nowhere, "m"); ok {
				t.Errorf("%s: %q is at %q", name, nowhere, path)
			}
		}
	}
	if _, ok := all.Named("OPENAI"); ok || len(operations) != len(provider.Operations()) {
		t.Errorf("%d of %d operations; a name in capitals is found: %v", len(operations), len(provider.Operations()), ok)
	}
	if first := all.All()[0].Dialect.Name(); first != "openai" {
		t.Errorf("the first is %s", first)
	}
}

// hostile are names of models that would like to be more than a segment of a path.
var hostile = []string{
	"", "m", "a/b", "/", "//elsewhere.example", "..", ".", "../..", "../../keys", "a?b", "?", "#", "a#b", "%", "%2e%2e", "%2F", "%zz", "a%", ";", "a b", "+",
	"\x00", "a\nb", "\r\nHost: elsewhere.example", "\x7f", "é", "\xff", "😀", ":", "@elsewhere.example", "a:b@c", "\\", "..\\..", "&", "=", "{path}", "{model}",
	"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
	"https://elsewhere.example/", strings.Repeat("x/", 1000), "models", "models/..", "models/../../x", "...",
}

// Whatever a model is called, its request goes to the same host, and its name is one segment
// of the path, or no part of the address at all.
func TestHostileModelsStayInside(t *testing.T) {
	for _, e := range all.All() {
		for _, operation := range provider.Operations() {
			if _, ok := e.Dialect.Path(operation, ""); !ok {
				continue
			}
			for _, model := range hostile {
				checkInside(t, e.Dialect, operation, model)
			}
		}
	}
}

func checkInside(t *testing.T, d provider.Dialect, operation, model string) {
	t.Helper()
	const base = "https://home.example/base"
	plain, _ := d.Path(operation, "m")
	path, ok := d.Path(operation, model)
	u, err := url.Parse(base + path)
	if !ok || err != nil {
		t.Errorf("%s %s: model %q: %q, %v", d.Name(), operation, model, path, err)
		return
	}
	if u.Host != "home.example" || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.String() != base+path {
		t.Errorf("%s %s: model %q: %s", d.Name(), operation, model, u)
	}
	segments, want := strings.Split(u.EscapedPath(), "/"), strings.Split("/base"+plain, "/")
	if len(segments) != len(want) || slices.Contains(segments, "..") || slices.Contains(segments, ".") {
		t.Errorf("%s %s: model %q: %s", d.Name(), operation, model, u.EscapedPath())
		return
	}
	for i := range want {
		if segments[i] == want[i] {
			continue
		}
		head, tail, _ := strings.Cut(want[i], "m")
		name, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(segments[i], head), tail))
		if err != nil || name != model && name != strings.TrimPrefix(model, "models/") {
			t.Errorf("%s %s: model %q came as %q, %v", d.Name(), operation, model, name, err)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, model := range hostile {
		f.Add(model)
	}
	f.Fuzz(func(t *testing.T, model string) {
		for _, e := range all.All() {
			for _, operation := range provider.Operations() {
				if _, ok := e.Dialect.Path(operation, ""); ok {
					checkInside(t, e.Dialect, operation, model)
				}
			}
		}
	})
}

// Each dialect understands every recording that came whole: those in its own words, and those
// in nobody's, which any server may have passed on.
func TestRecordings(t *testing.T) {
	for _, e := range all.All() {
		for _, c := range providertest.Cases() {
			if c.Whole && (c.Dialect == "" || c.Dialect == e.Dialect.Name()) {
				t.Run(e.Dialect.Name()+"/"+c.Name, func(t *testing.T) { understood(t, e.Dialect, c) })
			}
		}
	}
}

func understood(t *testing.T, d provider.Dialect, c providertest.Case) {
	reply, e := d.Answer(c.Status, c.Header, c.Body, nil)
	switch {
	case c.Fine && e != nil:
		t.Errorf("a good answer gave %v", e)
	case c.Fine:
		c.CheckReply(t, reply)
		if text, has := d.Text(c.Body); c.Dialect != "" {
			c.CheckText(t, text, has)
		}
	case e == nil:
		t.Errorf("no error, want kind %v", c.Kind)
	default:
		c.Check(t, e)
	}
}

// A vendor's own words are asked before the dialect's and before everybody's, and none
// change nothing.
func TestVendorsWordsFirst(t *testing.T) {
	body := []byte(`{"error":{"type":"rate_limit_error","code":"resource_exhausted","message":"The garden gate is shut."}}`)
	for _, e := range all.All() {
		for want, w := range map[provider.Kind]*provider.Wording{
			provider.Throttled:      nil,
			provider.Overloaded:     {Kinds: map[string]provider.Kind{"rate_limit_error": provider.Overloaded}},
			provider.QuotaExhausted: {Phrases: []provider.Phrase{{Says: "garden gate", Kind: provider.QuotaExhausted}}},
		} {
			if _, err := e.Dialect.Answer(429, nil, body, w); err == nil || err.Kind != want {
				t.Errorf("%s: %v, want %v", e.Dialect.Name(), err, want)
			}
		}
		own := &provider.Wording{Statuses: map[int]provider.Kind{418: provider.Overloaded}}
		if _, err := e.Dialect.Answer(418, nil, nil, own); err == nil || err.Kind != provider.Overloaded {
			t.Errorf("%s: %v", e.Dialect.Name(), err)
		}
	}
}

// A text that is no UTF-8 is made one: what is saved of it must be JSON.
func TestTextIsUTF8(t *testing.T) {
	said := "a\xffb"
	for name, body := range map[string]string{
		"openai":    `{"choices":[{"message":{"content":"` + said + `"}}]}`,
		"anthropic": `{"content":[{"type":"text","text":"` + said + `"}]}`,
		"gemini":    `{"candidates":[{"content":{"parts":[{"text":"` + said + `"}]}}]}`,
		"converse":  `{"output":{"message":{"content":[{"text":"` + said + `"}]}}}`,
	} {
		entry, _ := all.Named(name)
		if text, ok := entry.Dialect.Text([]byte(body)); !ok || text != "a\uFFFDb" {
			t.Errorf("%s: %q, %v", name, text, ok)
		}
	}
}

// Whatever comes, an answer is one or is an error, and its words can be saved.
func FuzzAnswer(f *testing.F) {
	for _, c := range providertest.Cases() {
		f.Add(c.Status, c.Body)
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, entry := range all.All() {
			d := entry.Dialect
			reply, e := d.Answer(status, nil, body, nil)
			text, has := d.Text(body)
			if has != (text != "") || strings.ToValidUTF8(text, "") != text || len(text) > 3*len(body) {
				t.Errorf("%s: %q, %v", d.Name(), text, has)
			}
			u := reply.Usage
			if u.CachedTokens > u.InputTokens || u.ReasoningTokens > u.OutputTokens || u.CacheWriteTokens < 0 || !reply.HasUsage && u != (provider.Usage{}) {
				t.Errorf("%s: %+v, %v", d.Name(), u, reply.HasUsage)
			}
			if e == nil && status/100 != 2 || e != nil && (e.Kind == provider.Canceled || e.Kind == provider.Truncated) {
				t.Errorf("%s: status %d: %v", d.Name(), status, e)
			}
			if e == nil && provider.ClassifyOK(body) != nil && provider.ObjectIn(body) == nil {
				t.Errorf("%s: %q is an answer", d.Name(), body)
			}
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clientOf has a key where the first vendor of the dialect looks for one.
func clientOf(d provider.Dialect, key string, t http.RoundTripper) (*wire.Client, error) {
	for _, v := range catalog.Rows() {
		if v.Dialect != d {
			continue
		}
		return catalog.Client(v.Name, catalog.Place{}, key, func(c *wire.Config) {
			c.BaseURL, c.Transport, c.Text = "http://sim", t, true
		})
	}
	return wire.New(wire.Config{Dialect: d, BaseURL: "http://sim", Transport: t, Text: true})
}

// Every dialect has a face that speaks it, and a client that asks a chat of OpenAI's there
// gets its answer in words, with what it used and why it ended, or the error that it is. One
// without chats is asked for a rerank.
func TestClientsAskTheirFaces(t *testing.T) {
	for _, e := range all.All() {
		name := e.Dialect.Name()
		if e.Face == nil || e.Face.Name() != name {
			t.Errorf("%s: no face", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, c := range asked {
				askFace(t, e, c)
			}
		})
	}
}

// An embedding of OpenAI's is answered by the face of each dialect into which it can be put, for
// one text and for as many as the model takes, with what it used.
func TestClientsEmbedAtTheirFaces(t *testing.T) {
	for _, c := range []struct{ dialect, model, more, vectors string }{
		{"openai", "m", `"input":["one","two"]`, "data.#.embedding"},
		{"gemini", "m", `"input":"one"`, "embedding.values"},
		{"gemini", "m", `"input":["one","two"]`, "embeddings.#.values"},
		{"converse", "amazon.titan-embed-text-v2:0", `"input":["one"]`, "embedding"},
		{"converse", "cohere.embed-v4:0", `"input":["one","two"],"input_type":"search_query"`, "embeddings.float"},
		{"cohere", "m", `"input":["one","two"],"input_type":"search_query"`, "embeddings.float"},
	} {
		entry, _ := all.Named(c.dialect)
		client, err := clientOf(entry.Dialect, "key-1", sim.NewTransport(sim.New(sim.Config{Face: entry.Face, Keys: []string{"key-1"}}, clockwork.NewFakeClock())))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := client.Do(t.Context(), provider.Request{Endpoint: provider.Embeddings, Model: c.model, Body: []byte(`{"model":"` + c.model + `",` + c.more + `}`)})
		if err != nil || reply.Translated != (c.dialect != "openai") || reply.HasText {
			t.Errorf("%+v: %+v, %v", c, reply, err)
			continue
		}
		read := int64(1)
		if strings.Contains(c.more, "two") {
			read = 2
		}
		if reply.Usage != (provider.Usage{InputTokens: read}) || !gjson.GetBytes(reply.Body, c.vectors+"|0").Exists() {
			t.Errorf("%+v: %+v %s", c, reply.Usage, reply.Body)
		}
	}
}

// asked lists servers, and the end of the second call to each.
var asked = []struct {
	cfg        sim.Config
	key, model string // default: key-1, m
	want       provider.Kind
	fine       bool
}{
	{fine: true},
	{cfg: sim.Config{RPM: 1}, want: provider.Throttled},
	{cfg: sim.Config{Errors: sim.Rates{Overloaded503: 1}}, want: provider.Overloaded},
	{cfg: sim.Config{Errors: sim.Rates{Server500: 1}}, want: provider.Server},
	{cfg: sim.Config{Errors: sim.Rates{BadRequest400: 1}}, want: provider.Invalid},
	{cfg: sim.Config{QuotaAfter: 1}, want: provider.QuotaExhausted},
	{key: "another", want: provider.Unauthorized},
	{model: "another", want: provider.ModelNotFound},
}

// chats reports whether a dialect has chats, of its own or translated.
func chats(d provider.Dialect) bool {
	return slices.Contains(append(wire.Served(d), wire.Translates(d)...), provider.Chat)
}

func askFace(t *testing.T, e all.Entry, c struct {
	cfg        sim.Config
	key, model string
	want       provider.Kind
	fine       bool
},
) {
	t.Helper()
	name := e.Dialect.Name()
	c.cfg.Face, c.cfg.Keys, c.cfg.Models = e.Face, []string{"key-1"}, []string{"m"}
	client := must.Get(clientOf(e.Dialect, cmp.Or(c.key, "key-1"), sim.NewTransport(sim.New(c.cfg, clockwork.NewFakeClock()))))(t)
	model := cmp.Or(c.model, "m")
	r := provider.Request{
		Endpoint: provider.Chat, Model: model, MaxTokens: 500,
		Body: []byte(`{"model":"` + model + `","messages":[{"role":"user","content":"hello"}]}`),
	}
	if !chats(e.Dialect) {
		r.Endpoint, r.Body = provider.Rerank, []byte(`{"model":"`+model+`","query":"hello","documents":["one","two"]}`)
	}
	_, _ = client.Do(context.Background(), r)
	reply, err := client.Do(context.Background(), r)
	if c.fine != (err == nil) || !c.fine && !errors.Is(err, c.want) {
		t.Errorf("%+v: %v, want %v", c, err, c.want)
	}
	if !c.fine || !chats(e.Dialect) {
		return
	}
	if reply.Text != sim.Answer("hello") || !reply.HasText || reply.Dialect != name || reply.Translated != (name != "openai") {
		t.Errorf("%+v", reply)
	}
	if reply.Usage.InputTokens == 0 || reply.Usage.OutputTokens == 0 || provider.EndOf(reply.Finish) != provider.EndStop {
		t.Errorf("%+v, %q", reply.Usage, reply.Finish)
	}
}
