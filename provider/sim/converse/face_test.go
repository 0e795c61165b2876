package converse_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/converse"
	"github.com/headrace/headrace/provider/sim/simtest"
)

const (
	address = "/model/m/converse"
	hello   = `{"messages":[{"role":"user","content":[{"text":"hello"}]}]}`
)

func server(cfg sim.Config) *sim.Server { return simtest.New(cfg, converse.Face{}) }

func with(field string) string { return "{" + field + "," + hello[1:] }

func named(a simtest.Answer) string {
	name, _, _ := strings.Cut(a.Header.Get("X-Amzn-Errortype"), ":")
	return name
}

// What Bedrock would refuse is refused: by its types, or by what it says.
func TestRequestsAreChecked(t *testing.T) {
	s := server(sim.Config{})
	const serialization, validation = "SerializationException", "ValidationException"
	for _, c := range []struct{ body, name, says string }{
		{`{"messages":`, serialization, ""},
		{`[]`, serialization, ""},
		{`{"messages":"hello"}`, serialization, "STRING_VALUE can not be converted to a List"},
		{with(`"inferenceConfig":{"temperature":"hot"}`), serialization, "STRING_VALUE can not be converted to a Float"},
		{`{"messages":[{"role":"user","content":"hello"}]}`, serialization, "a List"},
		{`{}`, validation, "must start with a user message"},
		{`{"messages":[]}`, validation, "must start with a user message"},
		{`{"messages":[{"role":"assistant","content":[{"text":"a"}]}]}`, validation, "must start with a user message"},
		{`{"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"user","content":[{"text":"b"}]}]}`, validation, "must alternate between user and assistant roles"},
		{`{"messages":[{"role":"user","content":[]}]}`, validation, "The content field in the Message object at messages.0 is empty."},
		{`{"messages":[{"role":"user","content":[{"text":" "}]}]}`, validation, "The text field in the ContentBlock object at messages.0.content.0 is blank."},
		{`{"messages":[{"role":"user","content":[{"text":"a","cachePoint":{"type":"default"}}]}]}`, validation, "exactly one of the following keys"},
		{`{"messages":[{"role":"user","content":[{}]}]}`, validation, "exactly one of the following keys"},
		{`{"messages":[{"role":"system","content":[{"text":"a"}]}]}`, validation, "Value 'system' at 'messages.1.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]"},
		{`{"messages":[{"content":[{"text":"a"}]}]}`, validation, "Value null at 'messages.1.member.role' failed to satisfy constraint: Member must not be null"},
		{with(`"inferenceConfig":{"temperature":1.5}`), validation, "Value '1.5' at 'inferenceConfig.temperature' failed to satisfy constraint: Member must have value less than or equal to 1"},
		{with(`"inferenceConfig":{"maxTokens":0}`), validation, "greater than or equal to 1"},
		{with(`"inferenceConfig":{"max_tokens":1}`), validation, "extraneous key [inferenceConfig.max_tokens]"},
		{with(`"model":"m"`), validation, "extraneous key [model]"},
		{with(`"system":"Be brief."`), serialization, "a List"},
	} {
		a := simtest.Ask(t, s, address, c.body, "Authorization", "Bearer k")
		if a.Status != 400 || named(a) != c.name || !strings.Contains(a.Body.Get("message").Str, c.says) {
			t.Errorf("%s: %d %s %s, want %s", c.body, a.Status, named(a), a.Body.Raw, c.says)
		}
	}
	for _, body := range []string{
		with(`"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}}],"inferenceConfig":{"maxTokens":9,"temperature":1,"topP":0.5,"stopSequences":["x"]}`),
		with(`"toolConfig":{"tools":[{"toolSpec":{}}]},"additionalModelRequestFields":{"top_k":3},"requestMetadata":{"a":"b"},"performanceConfig":{"latency":"standard"}`),
		`{"messages":[{"role":"user","content":[{"text":"a"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"t","input":{}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"3"}]}}]}]}`,
	} {
		if a := simtest.Ask(t, s, address, body, "Authorization", "Bearer k"); a.Status != 200 {
			t.Errorf("%s: %d %s", body, a.Status, a.Body.Raw)
		}
	}
}

// The model comes out of the path as it was escaped, colons and slashes included.
func TestModelInThePath(t *testing.T) {
	const arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.claude-v1:0"
	s := server(sim.Config{Models: []string{"anthropic.claude-v2:1", arn}})
	for path, status := range map[string]int{
		"/model/anthropic.claude-v2:1/converse": 200, "/model/anthropic.claude-v2%3A1/converse": 200, "/model/m/converse": 400,
		"/model/" + strings.NewReplacer(":", "%3A", "/", "%2F").Replace(arn) + "/converse": 200, "/model/" + arn + "/converse": 404,
		"/model/m/converse-stream": 400, "/model/anthropic.claude-v2:1/converse-stream": 200, "/model/m/invoke-with-response-stream": 404, "/model/converse": 404,
	} {
		if a := simtest.Ask(t, s, path, hello, "Authorization", "Bearer k"); a.Status != status || status == 404 && named(a) != "UnknownOperationException" {
			t.Errorf("%s: %d %v %s", path, a.Status, a.Header, a.Body.Raw)
		}
	}
}

const signature = "AWS4-HMAC-SHA256 Credential=AKID/20300101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=00ff"

// A Bearer key or a signature's access key counts. The error tells a missing proof from a wrong one.
func TestKeys(t *testing.T) {
	s := server(sim.Config{Keys: []string{"k", "AKID"}})
	for auth, want := range map[string]string{
		"Bearer k": "", signature: "", "": "MissingAuthenticationTokenException", "Bearer x": "AccessDeniedException", "Basic x": "IncompleteSignatureException",
		strings.Replace(signature, "AKID", "OTHER", 1):         "UnrecognizedClientException",
		strings.Replace(signature, "/bedrock/", "/s3/", 1):     "IncompleteSignatureException",
		strings.Replace(signature, "Signature=00ff", "", 1):    "IncompleteSignatureException",
		strings.Replace(signature, "host;", "", 1):             "IncompleteSignatureException",
		strings.Replace(signature, "aws4_request", "other", 1): "IncompleteSignatureException",
		"AWS4-HMAC-SHA256 ": "IncompleteSignatureException",
	} {
		a := simtest.Ask(t, s, address, hello, "Authorization", auth, "X-Amz-Date", "20300101T000000Z")
		if named(a) != want || want != "" && a.Status != http.StatusForbidden {
			t.Errorf("%s: %d %s %s, want %s", auth, a.Status, named(a), a.Body.Raw, want)
		}
	}
	if a := simtest.Ask(t, s, address, hello, "Authorization", signature); a.Status != 403 {
		t.Errorf("without a date: %d", a.Status)
	}
	if a := simtest.Ask(t, server(sim.Config{}), address, hello); a.Status != 403 {
		t.Errorf("without a key: %d", a.Status)
	}
}

// Bedrock says which of the two ran short and no figure; its ids are UUIDs.
func TestThrottling(t *testing.T) {
	for _, c := range []struct {
		cfg  sim.Config
		says string
		wait string
	}{
		{sim.Config{RPM: 1, Headers: true, RetryAfter: sim.Always}, "Too many requests, please wait before trying again.", "60"},
		{sim.Config{TPM: 5000, RetryAfter: sim.Never}, "Too many tokens, please wait before trying again.", ""},
		{sim.Config{QuotaAfter: 1}, "Too many tokens per day, please wait before trying again.", ""},
	} {
		s := server(c.cfg)
		simtest.Ask(t, s, address, hello, "Authorization", "Bearer k")
		a := simtest.Ask(t, s, address, hello, "Authorization", "Bearer k")
		if a.Status != 429 || named(a) != "ThrottlingException" || a.Body.Get("message").Str != c.says || a.Header.Get("Retry-After") != c.wait ||
			a.Header.Get("X-Amzn-Requestid") != "00000000-0000-4000-8000-000000000002" || a.Header.Get("X-Ratelimit-Limit-Requests") != "" {
			t.Errorf("%d %v %s", a.Status, a.Header, a.Body.Raw)
		}
	}
}

// A call is charged for the most that it may write.
func TestCharge(t *testing.T) {
	s := server(sim.Config{TPM: 60_000})
	simtest.Ask(t, s, address, hello, "Authorization", "Bearer k")
	simtest.Ask(t, s, address, with(`"inferenceConfig":{"maxTokens":100}`), "Authorization", "Bearer k")
	if charged := s.Books().ChargedTokens; charged != 4096+2+100+2 {
		t.Error(charged)
	}
}

// How long a call took stands in its answer.
func TestUsageAndMetrics(t *testing.T) {
	a := simtest.Ask(t, server(sim.Config{}), address, hello, "Authorization", "Bearer k")
	u := a.Body.Get("usage")
	if u.Get("inputTokens").Num != 2 || u.Get("totalTokens").Num != u.Get("inputTokens").Num+u.Get("outputTokens").Num ||
		!a.Body.Get("metrics.latencyMs").Exists() || a.Body.Get("output.message.role").Str != "assistant" {
		t.Error(a.Body.Raw)
	}
}

// Whatever comes, it is answered or refused in Bedrock's form, and nothing panics.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		hello, ``, `{}`, `[]`, `null`, `"`, with(`"inferenceConfig":{"maxTokens":1e300}`), `{"messages":{"a":1}}`, `{"messages":[[],null,{"role":"user"}]}`,
		`{"messages":[{"role":"user","content":[[],null,{"text":{}},{"text":null}]}]}`, `{"messages":[{"role":"user","content":[{"text":"\ud800` + "\xff" + `"}]}]}`,
		`{"messages":[{"role":"user","content":[{"image":{"source":1}}]}]}`, strings.Repeat(`{"messages":[`, 2000),
		`{"inputText":"\ud800"}`, `{"inputText":[],"texts":{"a":1},"input_type":"clustering"}`, `{"texts":[[],null,"a"],"input_type":"clustering"}`,
	} {
		f.Add(body, "Bearer k")
		f.Add(body, signature)
	}
	f.Add(hello, "AWS4-HMAC-SHA256 Credential=,,=,Signature")
	limited, free := server(sim.Config{TPM: 100, RetryAfter: sim.Always}), server(sim.Config{})
	f.Fuzz(func(t *testing.T, body, auth string) {
		if strings.ContainsFunc(auth, func(c rune) bool { return c < ' ' || c > '~' }) {
			return
		}
		for _, s := range []*sim.Server{limited, free} {
			for _, path := range []string{address, address + "-stream", "/model/titan/invoke", "/model/cohere/invoke"} {
				a := simtest.Ask(t, s, path, body, "Authorization", auth, "X-Amz-Date", time.Time{}.String())
				vectors := a.Body.Get("embedding").IsArray() || a.Body.Get("embeddings.float").IsArray()
				if fine := a.Status == 200 && (a.Body.Get("#.metadata|#").Num == 1 || a.Body.Get("output.message.content.#").Num == 1 || vectors); !fine && named(a) == "" || !gjson.Valid(a.Body.Raw) {
					t.Errorf("%s: %d %s", path, a.Status, a.Body.Raw)
				}
			}
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	titan  = "/model/amazon.titan-embed-text-v2%3A0/invoke"
	cohere = "/model/cohere.embed-v4%3A0/invoke"
)

// Vectors are the texts' own, in the words of the model's maker, and a header counts the tokens read.
func TestEmbeddings(t *testing.T) {
	s := server(sim.Config{Models: []string{"amazon.titan-embed-text-v2:0", "cohere.embed-v4:0"}})
	one := simtest.Ask(t, s, titan, `{"inputText":"hello"}`, "Authorization", "Bearer k")
	if one.Status != 200 || float32(one.Body.Get("embedding.0").Num) != sim.Embedding("hello")[0] || one.Body.Get("inputTextTokenCount").Num != 2 || one.Header.Get("X-Amzn-Bedrock-Input-Token-Count") != "2" {
		t.Errorf("%d %v %s", one.Status, one.Header, one.Body.Raw)
	}
	two := simtest.Ask(t, s, cohere, `{"texts":["a","hello"],"input_type":"clustering"}`, "Authorization", "Bearer k")
	if two.Body.Get("embeddings.float.1").Raw != one.Body.Get("embedding").Raw || two.Body.Get("inputTextTokenCount").Exists() || two.Header.Get("X-Amzn-Bedrock-Input-Token-Count") != "2" {
		t.Errorf("%d %v %s", two.Status, two.Header, two.Body.Raw)
	}
	if charged := server(sim.Config{TPM: 100}); simtest.Ask(t, charged, titan, `{"inputText":"hello"}`, "Authorization", "Bearer k").Status != 200 {
		t.Error("what is only read is charged for output")
	}
}

// What a model's maker would refuse is refused.
func TestEmbeddingsAreChecked(t *testing.T) {
	s := server(sim.Config{})
	for _, c := range []struct{ path, body, says string }{
		{titan, `{}`, "[inputText]"},
		{titan, `{"inputText":["a"]}`, "[inputText]"},
		{titan, `{"texts":["a"],"input_type":"clustering"}`, "[inputText]"},
		{cohere, `{"texts":["a"]}`, "[input_type]"},
		{cohere, `{"texts":[],"input_type":"clustering"}`, "#/texts"},
		{cohere, `{"inputText":"a","input_type":"clustering"}`, "#/texts"},
		{cohere, `{"input_type":"clustering","texts":["a"` + strings.Repeat(`,"a"`, 96) + `]}`, "expected 1 to 96 texts"},
	} {
		if a := simtest.Ask(t, s, c.path, c.body, "Authorization", "Bearer k"); a.Status != 400 || named(a) != "ValidationException" || !strings.Contains(a.Body.Get("message").Str, c.says) {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, a.Status, a.Body.Raw)
		}
	}
}
