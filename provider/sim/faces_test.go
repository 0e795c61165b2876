package sim_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/anthropic"
	"github.com/headrace/headrace/provider/sim/converse"
	"github.com/headrace/headrace/provider/sim/face"
	"github.com/headrace/headrace/provider/sim/gemini"
	"github.com/headrace/headrace/provider/sim/openai"
	"github.com/headrace/headrace/provider/sim/simtest"
)

// speaker is a way to ask a face for an answer, and how its provider answers.
type speaker struct {
	name         string
	face         face.Face
	path         string
	header       []string // names and values in turn
	body         string   // with %s for the prompt, as JSON
	text         string   // where the answer is
	input        string   // where the tokens that were read are
	end, cut     string   // the words for an answer that is whole, and for one that is not
	ending       string   // where the word is
	bound        string   // the body with a bound of three tokens
	message      string   // where an error's words are
	id           string   // the header of the request's id; "": none
	full, broken int      // the statuses of too much to do and of a fault
	stranger     int      // of a key that is not known
	penniless    int      // of a spent balance
	unknown      int      // of a model that is not known
	word         map[sim.Kind]string
	wordAt       string
}

const (
	claude  = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":%s}]}`
	claude3 = `{"model":"m","max_tokens":3,"messages":[{"role":"user","content":%s}]}`
	google  = `{"contents":[{"role":"user","parts":[{"text":%s}]}]}`
	google3 = `{"contents":[{"role":"user","parts":[{"text":%s}]}],"generation_config":{"maxOutputTokens":3}}`
	gpt     = `{"model":"m","messages":[{"role":"user","content":%s}]}`
	gpt3    = `{"model":"m","max_tokens":3,"messages":[{"role":"user","content":%s}]}`
	bedrock = `{"messages":[{"role":"user","content":[{"text":%s}]}]}`
	rock3   = `{"messages":[{"role":"user","content":[{"text":%s}]}],"inferenceConfig":{"maxTokens":3}}`

	vertexPath = "/v1/projects/p/locations/l/publishers/"
)

var (
	anthropicWords = map[sim.Kind]string{
		sim.RateLimited: "rate_limit_error", sim.TooLarge: "rate_limit_error", sim.InsufficientQuota: "invalid_request_error", sim.Unauthorized: "authentication_error",
		sim.ModelNotFound: "not_found_error", sim.BadRequest: "invalid_request_error", sim.Overloaded: "overloaded_error", sim.ServerError: "api_error",
	}
	googleWords = map[sim.Kind]string{
		sim.RateLimited: "RESOURCE_EXHAUSTED", sim.TooLarge: "RESOURCE_EXHAUSTED", sim.InsufficientQuota: "RESOURCE_EXHAUSTED", sim.Unauthorized: "INVALID_ARGUMENT",
		sim.ModelNotFound: "NOT_FOUND", sim.BadRequest: "INVALID_ARGUMENT", sim.Overloaded: "UNAVAILABLE", sim.ServerError: "INTERNAL",
	}
	vertexWords = map[sim.Kind]string{
		sim.RateLimited: "RESOURCE_EXHAUSTED", sim.TooLarge: "RESOURCE_EXHAUSTED", sim.InsufficientQuota: "PERMISSION_DENIED", sim.Unauthorized: "UNAUTHENTICATED",
		sim.ModelNotFound: "NOT_FOUND", sim.BadRequest: "INVALID_ARGUMENT", sim.Overloaded: "UNAVAILABLE", sim.ServerError: "INTERNAL",
	}
	openaiWords = map[sim.Kind]string{
		sim.RateLimited: "rate_limit_exceeded", sim.TooLarge: "rate_limit_exceeded", sim.InsufficientQuota: "insufficient_quota", sim.Unauthorized: "invalid_api_key",
		sim.ModelNotFound: "model_not_found", sim.Overloaded: "server_is_overloaded",
	}
	azureWords = map[sim.Kind]string{
		sim.RateLimited: "RateLimitReached", sim.TooLarge: "RateLimitReached", sim.InsufficientQuota: "insufficient_quota", sim.Unauthorized: "401",
		sim.ModelNotFound: "DeploymentNotFound", sim.Overloaded: "503", sim.ServerError: "InternalServerError",
	}
	awsWords = map[sim.Kind]string{
		sim.RateLimited: "ThrottlingException", sim.TooLarge: "ThrottlingException", sim.InsufficientQuota: "ThrottlingException", sim.Unauthorized: "AccessDeniedException",
		sim.ModelNotFound: "ValidationException", sim.BadRequest: "ValidationException", sim.Overloaded: "ServiceUnavailableException", sim.ServerError: "InternalServerException",
	}
)

// speakers are every face at every address.
var speakers = []speaker{
	{
		"openai",
		openai.Face{},
		"/v1/chat/completions",
		[]string{"Authorization", "Bearer k"},
		gpt, "choices.0.message.content", "usage.prompt_tokens",
		"stop", "length", "choices.0.finish_reason", gpt3, "error.message", "X-Request-Id", 503, 500, 401, 429, 404, openaiWords, "error.code",
	},
	{
		"azure v1",
		openai.Face{},
		"/openai/v1/chat/completions",
		[]string{"Api-Key", "k"},
		gpt, "choices.0.message.content", "usage.prompt_tokens",
		"stop", "length", "choices.0.finish_reason", gpt3, "error.message", "Apim-Request-Id", 503, 500, 401, 429, 404, azureWords, "error.code",
	},
	{
		"azure old",
		openai.Face{},
		"/openai/deployments/m/chat/completions?api-version=2024-10-21",
		[]string{"Api-Key", "k"},
		gpt, "choices.0.message.content", "usage.prompt_tokens",
		"stop", "length", "choices.0.finish_reason", gpt3, "error.message", "Apim-Request-Id", 503, 500, 401, 429, 404, azureWords, "error.code",
	},
	{
		"anthropic",
		anthropic.Face{},
		"/v1/messages",
		[]string{"X-Api-Key", "k", "Anthropic-Version", "2023-06-01"},
		claude, "content.#(type==text).text", "usage.input_tokens",
		"end_turn", "max_tokens", "stop_reason", claude3, "error.message", "Request-Id", 529, 500, 401, 400, 404, anthropicWords, "error.type",
	},
	{
		"claude on foundry",
		anthropic.Face{},
		"/anthropic/v1/messages",
		[]string{"Authorization", "Bearer k", "Anthropic-Version", "2026-10-21"},
		claude, "content.0.text", "usage.input_tokens",
		"end_turn", "max_tokens", "stop_reason", claude3, "error.message", "Request-Id", 529, 500, 401, 400, 404, anthropicWords, "error.type",
	},
	{
		"claude on vertex",
		anthropic.Face{},
		vertexPath + "anthropic/models/m:rawPredict",
		[]string{"Authorization", "Bearer k"},
		strings.Replace(claude, `"model":"m"`, `"anthropic_version":"vertex-2023-10-16"`, 1), "content.0.text", "usage.input_tokens",
		"end_turn", "max_tokens", "stop_reason", strings.Replace(claude3, `"model":"m"`, `"anthropic_version":"vertex-2023-10-16"`, 1),
		"error.message", "Request-Id", 529, 500, 401, 400, 404, anthropicWords, "error.type",
	},
	{
		"gemini",
		gemini.Face{},
		"/v1beta/models/m:generateContent",
		[]string{"X-Goog-Api-Key", "k"},
		google, "candidates.0.content.parts.0.text", "usageMetadata.promptTokenCount",
		"STOP", "MAX_TOKENS", "candidates.0.finishReason", google3, "error.message", "", 503, 500, 400, 429, 404, googleWords, "error.status",
	},
	{
		"gemini on vertex",
		gemini.Face{},
		vertexPath + "google/models/m:generateContent",
		[]string{"Authorization", "Bearer k"},
		google, "candidates.0.content.parts.0.text", "usageMetadata.promptTokenCount",
		"STOP", "MAX_TOKENS", "candidates.0.finishReason", google3, "error.message", "", 503, 500, 401, 403, 404, vertexWords, "error.status",
	},
	{
		"converse",
		converse.Face{},
		"/model/m/converse",
		[]string{"Authorization", "Bearer k"},
		bedrock, "output.message.content.0.text", "usage.inputTokens",
		"end_turn", "max_tokens", "stopReason", rock3, "message", "X-Amzn-Requestid", 503, 500, 403, 429, 400, awsWords, "",
	},
}

func (sp speaker) server(cfg sim.Config) *sim.Server {
	return simtest.New(cfg, sp.face)
}

func (sp speaker) says(t *testing.T, s *sim.Server, prompt string) simtest.Answer {
	t.Helper()
	return simtest.Ask(t, s, sp.path, fmt.Sprintf(sp.body, face.Quote(prompt)), sp.header...)
}

// Whatever the face, the answer is the prompt's own, and is counted as it is long.
func TestEveryFaceAnswersThePrompt(t *testing.T) {
	for _, sp := range speakers {
		t.Run(sp.name, func(t *testing.T) {
			s := sp.server(sim.Config{TrackIDs: true, Keys: []string{"k"}, Models: []string{"m"}})
			for _, prompt := range []string{"Why is the sky blue?", "ünïcode \"quoted\" \u2028\n"} {
				g := sp.says(t, s, prompt)
				if g.Status != 200 || g.Body.Get(sp.text).Str != sim.Answer(prompt) || g.Body.Get(sp.ending).Str != sp.end {
					t.Errorf("%d %s", g.Status, g.Body.Raw)
				}
				if g.Body.Get(sp.input).Num != float64((len([]rune(prompt))+3)/4) {
					t.Errorf("%v tokens in of %q", g.Body.Get(sp.input), prompt)
				}
				if sp.id != "" && g.Header.Get(sp.id) == "" {
					t.Errorf("no id in %v", g.Header)
				}
			}
			g := simtest.Ask(t, s, sp.path, fmt.Sprintf(sp.bound, `"one"`), sp.header...)
			if g.Body.Get(sp.text).Str != sim.Answer("one")[:12] || g.Body.Get(sp.ending).Str != sp.cut {
				t.Errorf("cut: %s", g.Body.Raw)
			}
			if b := s.Books(); b.Accepted != 3 || b.Distinct != 3 {
				t.Errorf("%+v", b)
			}
		})
	}
}

// The faults of a configuration come in every dialect with its provider's status and word.
func TestEveryFaceWordsItsFaults(t *testing.T) {
	for _, sp := range speakers {
		for _, c := range []struct {
			kind   sim.Kind
			cfg    sim.Config
			status int
		}{
			{sim.RateLimited, sim.Config{RPM: 1, Outages: nil}, 429},
			{sim.TooLarge, sim.Config{TPM: .5}, 429},
			{sim.InsufficientQuota, sim.Config{QuotaAfter: 1}, sp.penniless},
			{sim.Unauthorized, sim.Config{Keys: []string{"another"}}, sp.stranger},
			{sim.ModelNotFound, sim.Config{Models: []string{"another"}}, sp.unknown},
			{sim.BadRequest, sim.Config{Errors: sim.Rates{BadRequest400: 1}}, 400},
			{sim.Overloaded, sim.Config{Errors: sim.Rates{Overloaded503: 1}}, sp.full},
			{sim.Overloaded, sim.Config{Outages: []sim.Outage{{For: time.Hour, Mode: sim.Outage503}}}, sp.full},
			{sim.ServerError, sim.Config{Errors: sim.Rates{Server500: 1}}, sp.broken},
		} {
			t.Run(sp.name+"/"+string(c.kind), func(t *testing.T) {
				s := sp.server(c.cfg)
				g := sp.says(t, s, "one")
				if g.Status == 200 { // the limits are met by the second
					g = sp.says(t, s, "one")
				}
				word := g.Body.Get(sp.wordAt).String()
				if sp.wordAt == "" {
					word, _, _ = strings.Cut(g.Header.Get("X-Amzn-Errortype"), ":")
				}
				if g.Status != c.status || word != sp.word[c.kind] || g.Body.Get(sp.message).String() == "" {
					t.Errorf("%d %s: %s", g.Status, word, g.Body.Raw)
				}
				if sp.id != "" && g.Header.Get(sp.id) == "" {
					t.Errorf("no id in %v", g.Header)
				}
			})
		}
	}
}

// A 200 that is no answer is none in any dialect, and one that is cut is cut.
func TestEveryFaceGarbles(t *testing.T) {
	for _, sp := range speakers {
		s := sp.server(sim.Config{Errors: sim.Rates{Malformed200: 1}})
		ways := map[string]int{}
		for i := range 20 {
			g := sp.says(t, s, fmt.Sprint("garbled ", i))
			switch {
			case g.Status != 200 || g.Body.Get(sp.text).Exists():
				t.Errorf("%s: %d %s", sp.name, g.Status, g.Body.Raw)
			case g.Header.Get("Content-Type") == "text/html":
				ways["page"]++
			case g.Body.Raw == "":
				ways["empty"]++
			case g.Body.Get(sp.message).Exists():
				ways["error"]++
			default:
				t.Errorf("%s: %s", sp.name, g.Body.Raw)
			}
		}
		if len(ways) != 3 {
			t.Errorf("%s: %v", sp.name, ways)
		}
	}
}

// A provider's unknown addresses are not found, and unknown methods are not allowed. Neither is
// counted. Every face also has the books and the health.
func TestEveryFaceHasItsAddressesAlone(t *testing.T) {
	for _, sp := range speakers {
		s := sp.server(sim.Config{})
		for _, path := range []string{"/", "/v2/chat", "/v1/messages/x", "/model//converse", "/model/a/b/converse", "/v1beta/models/m:countTokens", "/v1beta/models/:generateContent", vertexPath + "meta/models/m:generateContent"} {
			if g := simtest.Ask(t, s, path, "{}", sp.header...); g.Status != 404 {
				t.Errorf("%s: %s: %d", sp.name, path, g.Status)
			}
		}
		g := simtest.Send(t, s, "GET", sp.path, "", sp.header...)
		if sp.name != "converse" && g.Status != 405 || g.Header.Get("Allow") != "POST" {
			t.Errorf("%s: GET: %d %v", sp.name, g.Status, g.Header)
		}
		if g := simtest.Send(t, s, "GET", "/healthz", ""); g.Body.Get("status").Str != "ok" {
			t.Errorf("%s: %s", sp.name, g.Body.Raw)
		}
		if g := simtest.Send(t, s, "GET", "/sim/books", ""); g.Body.Get("received").Num != 0 {
			t.Errorf("%s: %s", sp.name, g.Body.Raw)
		}
	}
}

// Lists of models, for whom has a key.
func TestFacesListTheirModels(t *testing.T) {
	for _, c := range []struct {
		face        face.Face
		path, where string
	}{
		{openai.Face{}, "/v1/models", "data.1.id"},
		{openai.Face{}, "/openai/v1/models", "data.1.id"},
		{anthropic.Face{}, "/v1/models", "data.1.id"},
		{gemini.Face{}, "/v1beta/models", "models.1.name"},
	} {
		s := sim.New(sim.Config{Face: c.face, Models: []string{"a", "b"}, Keys: []string{"k"}}, clockwork.NewFakeClockAt(simtest.Epoch))
		g := simtest.Send(t, s, "GET", c.path, "", "Authorization", "Bearer k")
		if name := strings.TrimPrefix(g.Body.Get(c.where).Str, "models/"); g.Status != 200 || name != "b" {
			t.Errorf("%s: %d %s", c.path, g.Status, g.Body.Raw)
		}
		if g := simtest.Send(t, s, "GET", c.path, "", "Authorization", "Bearer other"); g.Status/100 != 4 {
			t.Errorf("%s: %d %s", c.path, g.Status, g.Body.Raw)
		}
	}
}

// The books hold what was received, to be compared with a file byte for byte: every body
// by its checksum, with its repetitions and whatever became of it.
func TestBooksTellBodiesApart(t *testing.T) {
	for _, sp := range speakers {
		s := sp.server(sim.Config{TrackIDs: true, TrackBodies: true, RPM: 2})
		want := map[string]int{}
		for _, prompt := range []string{"a", "b", "b", "c"} {
			body := fmt.Sprintf(sp.body, face.Quote(prompt))
			sum := sha256.Sum256([]byte(body))
			want[hex.EncodeToString(sum[:])]++
			simtest.Ask(t, s, sp.path, body, append([]string{"Idempotency-Key", "the same"}, sp.header...)...)
		}
		if have := s.Books().Bodies; !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %v, want %v", sp.name, have, want)
		}
		var shown sim.Books
		g := simtest.Send(t, s, "GET", "/sim/books?bodies", "")
		if err := json.Unmarshal([]byte(g.Body.Raw), &shown); err != nil || !reflect.DeepEqual(shown.Bodies, want) || shown.Answered != nil {
			t.Errorf("%s: %v %s", sp.name, err, g.Body.Raw)
		}
		if g := simtest.Send(t, s, "GET", "/sim/books", ""); g.Body.Get("bodies").Exists() {
			t.Errorf("%s: %s", sp.name, g.Body.Raw)
		}
	}
	if s := sim.New(sim.Config{}, clockwork.NewFakeClockAt(simtest.Epoch)); s.Books().Bodies != nil {
		t.Error("bodies without TrackBodies")
	}
}

// A body longer than the server reads is refused in the face's words, unread.
func TestEveryFaceRefusesWhatIsTooLong(t *testing.T) {
	for _, sp := range speakers {
		r := must.Get(http.NewRequestWithContext(t.Context(), "POST", "http://sim"+sp.path, bytes.NewReader(nil)))(t)
		r.ContentLength = sim.MaxBody + 1
		resp := must.Get(sim.NewTransport(sp.server(sim.Config{})).RoundTrip(r))(t)
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("%s: %d", sp.name, resp.StatusCode)
		}
	}
}
