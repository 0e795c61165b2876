package all_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/cohere"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/providertest"
	"github.com/headrace/headrace/provider/wire"
)

// speaker holds what a client of a dialect is asked, and what it must send.
type speaker struct {
	dialect     provider.Dialect
	header      string // of the key
	prefix      string
	hello       provider.Request
	good        string // an answer whose text is Hi
	id          string // in that answer
	sends       []send
	refuses     []provider.Request // before anything is sent
	embeds      []embed
	embedsNever []embed
	long        string // an answer as they come
	longHeader  http.Header
}

// send is a request to a server at base: hello to a model, and what leaves for it.
type send struct {
	base, model, key string
	header           http.Header // of the configuration
	url              string
	sent             map[string]string // headers; "" is none
}

// embed is a request for embeddings, and the operation and the body that it becomes, or why it does not.
type embed struct{ model, body, operation, want string }

const (
	studio    = "https://generativelanguage.googleapis.com/v1beta"
	frankfurt = "https://bedrock-runtime.eu-central-1.amazonaws.com"
	haiku     = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
	profile   = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x"
	titan     = "amazon.titan-embed-text-v2:0"
	cohere3   = "cohere.embed-english-v3"

	ofCohere      = `{"texts":["a","b"],"input_type":"search_query","embedding_types":["float"],"truncate":"NONE"`
	noPurpose     = "input_type: is missing, and one is demanded, such as search_document or search_query"
	embedsNothing = "model: is not one of amazon.titan-embed-text-v2, cohere.embed-v4, cohere.embed-english-v3, cohere.embed-multilingual-v3"
)

var speakers = []speaker{
	{
		dialect: anthropic.Dialect{}, header: "X-Api-Key",
		hello: provider.Request{
			Endpoint: provider.Messages, Model: "claude-haiku-4-5",
			Body: []byte(` {"model":"claude-haiku-4-5","max_tokens":1e2,"messages":[{"role":"user","content":"Say hello."}],"stream":false}`),
		},
		good: `{"id":"msg_1","type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}`,
		sends: []send{
			{"https://api.anthropic.com", "m", "key-1", nil, "https://api.anthropic.com/v1/messages", map[string]string{"X-Api-Key": "key-1", "Anthropic-Version": "2023-06-01", "Authorization": ""}},
			{"https://h.example/anthropic/", "m", "", http.Header{anthropic.VersionHeader: {"2026-10-21"}}, "https://h.example/anthropic/v1/messages", map[string]string{"X-Api-Key": "", "Anthropic-Version": "2026-10-21", "Authorization": ""}},
			{"https://api.anthropic.com/v1", "m", "", nil, "https://api.anthropic.com/v1/messages", map[string]string{"X-Api-Key": "", "Anthropic-Version": "2023-06-01", "Authorization": ""}},
		},
		refuses: []provider.Request{
			{Endpoint: provider.Messages, Body: []byte(`{"stream":true}`)},
			{Endpoint: provider.Messages, Body: []byte(` {"stream":false,"str\u0065am":true}`)},
			{Endpoint: provider.Messages},
			{Endpoint: provider.Embeddings, Body: []byte(`{}`)},
			{Endpoint: "/v1/messages/batches", Body: []byte(`{}`)},
		},
		long: `{"model":"claude-haiku-4-5-20251001","id":"msg_01XF","type":"message","role":"assistant","content":[{"type":"text","text":"The three rivers are the Danube, the Inn and the Mur."}],` +
			`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":61,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":14,"service_tier":"standard"}}`,
		longHeader: http.Header{"Request-Id": {"req_1"}},
	},
	{
		dialect: gemini.Dialect{}, header: "X-Goog-Api-Key",
		hello: provider.Request{
			Endpoint: provider.GenerateContent, Model: "gemini-2.5-flash",
			Body: []byte(` {"contents":[{"role":"user","parts":[{"text":"Say hello."}]}],"model":"as it is"}`),
		},
		good: `{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2},"responseId":"PxYi"}`,
		id:   "PxYi",
		sends: []send{
			{studio, "gemini-2.5-flash", "key-1", nil, studio + "/models/gemini-2.5-flash:generateContent", map[string]string{"X-Goog-Api-Key": "key-1"}},
			{studio, "models/gemini-2.5-flash", "", nil, studio + "/models/gemini-2.5-flash:generateContent", map[string]string{"X-Goog-Api-Key": ""}},
			{studio, "a/../b?c", "", nil, studio + "/models/a%2F..%2Fb%3Fc:generateContent", nil},
			{"http://127.0.0.1:9/x/", "m", "", nil, "http://127.0.0.1:9/x/models/m:generateContent", nil},
			{"http://127.0.0.1:9", "m", "", nil, "http://127.0.0.1:9/v1beta/models/m:generateContent", nil},
		},
		refuses: []provider.Request{
			{Endpoint: provider.GenerateContent, Body: []byte(`{}`)},
			{Endpoint: provider.GenerateContent, Model: "m"},
			{Endpoint: provider.Embeddings, Model: "m", Body: []byte(`{}`)},
			{Endpoint: ":streamGenerateContent", Model: "m", Body: []byte(`{}`)},
		},
		embeds: []embed{ // one text goes to embedContent and several to batchEmbedContents
			{"m", `{"model":"m","input":"a\u00e9 \" b"}`, provider.EmbedContent, `{"content":{"parts":[{"text":"a\u00e9 \" b"}]}}`},
			{"models/m", `{"input":["a"],"dimensions":768,"encoding_format":"float"}`, provider.EmbedContent, `{"content":{"parts":[{"text":"a"}]},"embedContentConfig":{"outputDimensionality":768}}`},
			{
				"models/m", `{"input":["a","b"],"dimensions":768}`, provider.BatchEmbedContents,
				`{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]},"outputDimensionality":768},{"model":"models/m","content":{"parts":[{"text":"b"}]},"outputDimensionality":768}]}`,
			},
			{"a\"b", `{"input":["a","b"]}`, provider.BatchEmbedContents, `{"requests":[{"model":"models/a\"b","content":{"parts":[{"text":"a"}]}},{"model":"models/a\"b","content":{"parts":[{"text":"b"}]}}]}`},
		},
		embedsNever: []embed{
			{"", `{"input":"a"}`, "", "model: is required: it is part of the URL"},
			{"m", `{"input":"a","encoding_format":"base64"}`, "", `encoding_format: is not "float"`},
			{"m", `{"input":"a","input_type":"search_query"}`, "", "input_type: has no counterpart"},
			{"m", `{"input":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, "", "input: has more than 100 texts"},
		},
		long: `{"candidates":[{"content":{"parts":[{"text":"The three rivers are the Danube, the Inn and the Mur."}],"role":"model"},"finishReason":"STOP","index":0,"avgLogprobs":-0.1}],` +
			`"usageMetadata":{"promptTokenCount":61,"candidatesTokenCount":14,"totalTokenCount":75},"modelVersion":"gemini-2.5-flash","responseId":"PxYi"}`,
		longHeader: http.Header{"X-Goog-Request-Id": {"req_1"}},
	},
	{
		dialect: converse.Dialect{}, header: auth.Authorization, prefix: auth.BearerPrefix,
		hello: provider.Request{
			Endpoint: provider.Converse, Model: haiku,
			Body: []byte(` {"messages":[{"role":"user","content":[{"text":"Say hello."}]}],"inferenceConfig":{"maxTokens":1e2}}`),
		},
		good: `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7}}`,
		sends: []send{
			{frankfurt, haiku, "key-1", nil, frankfurt + "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse", map[string]string{"Authorization": "Bearer key-1"}},
			{frankfurt, profile, "", nil, frankfurt + "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx/converse", map[string]string{"Authorization": ""}},
			{"http://127.0.0.1:9", "..", "", nil, "http://127.0.0.1:9/model/%2E%2E/converse", nil},
		},
		refuses: []provider.Request{
			{Endpoint: provider.Converse, Body: []byte(`{}`)},
			{Endpoint: provider.Converse, Model: "m"},
			{Endpoint: provider.Embeddings, Model: "m", Body: []byte(`{}`)},
			{Endpoint: "/converse-stream", Model: "m", Body: []byte(`{}`)},
		},
		embeds: []embed{ // the model says in which words its embeddings are asked for, wherever it stands in an id
			{titan, `{"model":"x","input":"a\u00e9 \""}`, provider.Invoke, `{"inputText":"a\u00e9 \""}`},
			{"arn:aws:bedrock:us-east-1::foundation-model/" + titan, `{"input":["a"],"dimensions":256,"encoding_format":"float"}`, provider.Invoke, `{"inputText":"a","dimensions":256}`},
			{"us.cohere.embed-v4:0", `{"input":["a","b"],"input_type":"search_query","dimensions":512}`, provider.Invoke, ofCohere + `,"output_dimension":512}`},
			{cohere3, `{"input":["a","b"],"input_type":"search_query"}`, provider.Invoke, ofCohere + `}`},
			{"cohere.embed-multilingual-v3", `{"input":["a","b"],"input_type":"search_query"}`, provider.Invoke, ofCohere + `}`},
		},
		embedsNever: []embed{
			{titan, `{"input":["a","b"]}`, "", "input: has more than 1 text"},
			{titan, `{"input":"a","input_type":"search_query"}`, "", "input_type: has no counterpart"},
			{titan, `{"input":"a","encoding_format":"base64"}`, "", `encoding_format: is not "float"`},
			{"cohere.embed-v4:0", `{"input":"a"}`, "", noPurpose},
			{cohere3, `{"input":"a","input_type":"search_query","dimensions":512}`, "", "dimensions: has no counterpart with this model"},
			{cohere3, `{"input_type":"search_query","input":["a"` + strings.Repeat(`,"a"`, 96) + `]}`, "", "input: has more than 96 texts"},
			{"amazon.nova-lite-v1:0", `{"input":"a"}`, "", embedsNothing},
			{"", `{"input":"a"}`, "", embedsNothing},
		},
		long: `{"metrics":{"latencyMs":1275},"output":{"message":{"content":[{"text":"The three rivers are the Danube, the Inn and the Mur."}],"role":"assistant"}},` +
			`"stopReason":"end_turn","usage":{"inputTokens":61,"outputTokens":14,"serverToolUsage":{},"totalTokens":75}}`,
		longHeader: http.Header{"X-Amzn-Requestid": {"req_1"}},
	},
	{
		dialect: cohere.Dialect{},
		embeds: []embed{ // with what the texts are for; they are never cut
			{"embed-v4.0", `{"model":"x","input":"a\u00e9","input_type":"search_query"}`, provider.CohereEmbed, `{"model":"embed-v4.0","texts":["a\u00e9"],"input_type":"search_query","embedding_types":["float"],"truncate":"NONE"}`},
			{"embed-v4.0", `{"input_type":"clustering","input":["a","b"],"dimensions":256,"encoding_format":"float","user":null}`, provider.CohereEmbed, `{"model":"embed-v4.0","texts":["a","b"],"input_type":"clustering","embedding_types":["float"],"truncate":"NONE","output_dimension":256}`},
		},
		embedsNever: []embed{
			{"m", `{"input":"a"}`, "", noPurpose},
			{"m", `{"input":"a","input_type":"search_query","encoding_format":"base64"}`, "", `encoding_format: is not "float"`},
			{"m", `{"input_type":"search_query","input":["a"` + strings.Repeat(`,"a"`, 96) + `]}`, "", "input: has more than 96 texts"},
		},
	},
}

// client is one of the speaker's dialect, with a key where its provider looks for one.
func (s *speaker) client(t *testing.T, cfg wire.Config, key string) *wire.Client {
	t.Helper()
	who := must.Get(auth.NewKey(s.header, s.prefix, key))(t)
	cfg.Dialect, cfg.Auth = s.dialect, who
	c := must.Get(wire.New(cfg))(t)
	return c
}

// each runs a test for each speaker whose dialect answers in words.
func each(t *testing.T, test func(*testing.T, *speaker)) {
	t.Helper()
	for i := range speakers {
		if s := &speakers[i]; s.good != "" {
			t.Run(s.dialect.Name(), func(t *testing.T) { test(t, s) })
		}
	}
}

// A client of each dialect understands what all answer and keeps every promise.
func TestClients(t *testing.T) {
	each(t, func(t *testing.T, s *speaker) {
		providertest.Subject{Dialect: s.dialect.Name(), Request: s.hello, Text: true}.Run(t, func(baseURL string) providertest.Doer {
			return s.client(t, wire.Config{BaseURL: baseURL, Text: true}, providertest.Key)
		})
	})
}

// What is sent, and where, is what the provider asks for; the body is the line's, byte for byte.
func TestRequests(t *testing.T) {
	each(t, func(t *testing.T, s *speaker) {
		for _, c := range s.sends {
			sent := &providertest.Wire{Body: s.good}
			r := s.hello
			r.Model = c.model
			reply, err := s.client(t, wire.Config{BaseURL: c.base, Header: c.header, Transport: sent, Text: true}, c.key).Do(t.Context(), r)
			if err != nil || reply.Text != "Hi" || !reply.HasText || reply.Dialect != s.dialect.Name() || reply.RequestID != s.id || reply.Translated {
				t.Errorf("%+v, %v", reply, err)
			}
			got := sent.Last()
			if got.URL != c.url || got.Body != string(s.hello.Body) {
				t.Errorf("%+v, want %+v", got, c)
			}
			for name, value := range c.sent {
				if got.Header.Get(name) != value {
					t.Errorf("%s: %+v, want %+v", name, got, c)
				}
			}
		}
	})
}

// What cannot be one whole answer, names no model where it must, or is not of the dialect, is
// refused before it is sent.
func TestRefusedBeforeItIsSent(t *testing.T) {
	each(t, func(t *testing.T, s *speaker) {
		sent := &providertest.Wire{}
		c := s.client(t, wire.Config{BaseURL: "https://h.example", Transport: sent}, "")
		for _, r := range s.refuses {
			if _, err := c.Do(t.Context(), r); !errors.Is(err, provider.Invalid) || !strings.HasPrefix(err.Error(), s.dialect.Name()+": ") {
				t.Errorf("%s %s: %v", r.Endpoint, r.Body, err)
			}
		}
		if got := sent.Last(); got.URL != "" {
			t.Errorf("sent %+v", got)
		}
	})
}

// Texts to be embedded go out byte for byte; what cannot be said exactly is refused by its path.
func TestFromEmbeddings(t *testing.T) {
	embedders := 0
	for _, s := range speakers {
		to, can := s.dialect.(provider.Embedder)
		if !can {
			continue
		}
		embedders++
		for _, c := range s.embeds {
			operation, body, err := to.FromEmbeddings(provider.Request{Model: c.model, Body: []byte(c.body)})
			if err != nil || operation != c.operation || string(body) != c.want {
				t.Errorf("%s: %s: %s %s %v", c.model, c.body, operation, body, err)
			}
		}
		for _, c := range s.embedsNever {
			_, _, err := to.FromEmbeddings(provider.Request{Model: c.model, Body: []byte(c.body)})
			var why *provider.Untranslatable
			if !errors.As(err, &why) || why.Dialect != s.dialect.Name() || why.Field+": "+why.Why != c.want {
				t.Errorf("%s: %.60s: %v, want %s", c.model, c.body, err, c.want)
			}
		}
	}
	for _, e := range all.All() {
		if _, can := e.Dialect.(provider.Embedder); can {
			embedders--
		}
	}
	if embedders != 0 {
		t.Errorf("%d dialects that embed are missing", -embedders)
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, s := range speakers {
		if s.long == "" {
			continue
		}
		b.Run(s.dialect.Name(), func(b *testing.B) {
			body := []byte(s.long)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, e := s.dialect.Answer(http.StatusOK, s.longHeader, body, nil); e != nil {
					b.Fatal(e)
				}
			}
		})
	}
}
