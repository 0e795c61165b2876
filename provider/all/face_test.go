package all_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/wire"
)

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
	client, err := clientOf(e.Dialect, cmp.Or(c.key, "key-1"), sim.NewTransport(sim.New(c.cfg, clockwork.NewFakeClock())))
	if err != nil {
		t.Fatal(err)
	}
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
