package sim_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/anthropic"
	"github.com/headrace/headrace/provider/sim/converse"
	"github.com/headrace/headrace/provider/sim/face"
	"github.com/headrace/headrace/provider/sim/gemini"
	"github.com/headrace/headrace/provider/sim/openai"
	"github.com/headrace/headrace/provider/sim/simtest"
)

// streamer asks for the same answer whole and as a stream.
type streamer struct {
	name        string
	face        face.Face
	plain, path string // where the answer comes whole, and where as a stream
	body        string // with %s for the prompt, as JSON
	asks        string // the members of a body that asks for a stream
	contentType string
	names       string // of the first events and the last, "…" in place of those between
	join        func(events []gjson.Result) string
	failure     string // where an error within a stream has its words
}

const (
	claudeNames = "message_start content_block_start ping content_block_delta … content_block_stop message_delta message_stop"
	sse         = "text/event-stream; charset=utf-8"
	frames      = "application/vnd.amazon.eventstream"
)

var streamers = []streamer{
	{"chat", openai.Face{}, "/v1/chat/completions", "", gpt, `"stream":true,"stream_options":{"include_usage":true}`, sse, "", joinChat, "error.message"},
	{"chat at azure", openai.Face{}, "/openai/deployments/m/chat/completions?api-version=1", "", gpt, `"stream":true,"stream_options":{"include_usage":true}`, sse, "", joinChat, "error.message"},
	{"completions", openai.Face{}, "/v1/completions", "", `{"model":"m","prompt":["one",%s]}`, `"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`, sse, "", joinTexts, "error.message"},
	{
		"responses",
		openai.Face{},
		"/v1/responses", "", `{"model":"m","input":%s}`, `"stream":true`, sse,
		"response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta … " +
			"response.output_text.done response.content_part.done response.output_item.done response.completed", joinResponse, "response.error.message",
	},
	{"messages at openai", openai.Face{}, "/v1/messages", "", claude, `"stream":true`, sse, claudeNames, joinMessage, "error.message"},
	{"messages", anthropic.Face{}, "/v1/messages", "", claude, `"stream":true`, sse, claudeNames, joinMessage, "error.message"},
	{"messages with thoughts", anthropic.Face{}, "/v1/messages", "", `{"thinking":{"type":"adaptive"},` + claude[1:], `"stream":true`, sse, claudeNames, joinMessage, "error.message"},
	{
		"claude on vertex",
		anthropic.Face{},
		vertexPath + "anthropic/models/m:rawPredict", vertexPath + "anthropic/models/m:streamRawPredict",
		strings.Replace(claude, `"model":"m"`, `"anthropic_version":"vertex-2023-10-16"`, 1), `"stream":true`, sse, claudeNames, joinMessage, "error.message",
	},
	{"gemini", gemini.Face{}, "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse", google, "", "text/event-stream", "", joinGemini, "error.message"},
	{"gemini in a list", gemini.Face{}, "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent", google, "", "application/json; charset=UTF-8", "", joinGemini, "error.message"},
	{
		"gemini with thoughts",
		gemini.Face{},
		"/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse",
		`{"generationConfig":{"thinkingConfig":{"includeThoughts":true}},` + google[1:], "", "text/event-stream", "", joinGemini, "error.message",
	},
	{"gemini on vertex", gemini.Face{}, vertexPath + "google/models/m:generateContent", vertexPath + "google/models/m:streamGenerateContent?alt=sse", google, "", "text/event-stream", "", joinGemini, "error.message"},
	{
		"converse",
		converse.Face{},
		"/model/m/converse", "/model/m/converse-stream", bedrock, "", frames,
		"messageStart contentBlockDelta … contentBlockStop messageStop metadata", joinConverse, "modelStreamErrorException.message",
	},
}

// ask sends the prompt to a new server, so that the answer is its first.
func (x streamer) ask(t *testing.T, cfg sim.Config, streamed bool, prompt string) (simtest.Answer, *sim.Server) {
	t.Helper()
	s := simtest.New(cfg, x.face)
	path, body := x.plain, fmt.Sprintf(x.body, face.Quote(prompt))
	if streamed && x.path != "" {
		path = x.path
	}
	if streamed && x.asks != "" {
		body = "{" + x.asks + "," + body[1:]
	}
	a := simtest.Ask(t, s, path, body, "Authorization", "Bearer k", "Api-Key", "k", "Anthropic-Version", "2023-06-01", "Idempotency-Key", "one")
	return a, s
}

// Put together, a stream is the answer that comes whole, to the last member; its headers differ in
// the type of the content alone, and the books in nothing.
func TestStreamsAreTheAnswer(t *testing.T) {
	for _, x := range streamers {
		t.Run(x.name, func(t *testing.T) {
			cfg := sim.Config{RPM: 60, TPM: 1e6, Headers: true, TrackIDs: true}
			for _, prompt := range []string{"Why is the sky blue?", "ünïcode \"quoted\" \u2028\n"} {
				plain, one := x.ask(t, cfg, false, prompt)
				streamed, other := x.ask(t, cfg, true, prompt)
				if streamed.Status != 200 || streamed.Header.Get("Content-Type") != x.contentType {
					t.Fatalf("%d %v %s", streamed.Status, streamed.Header, streamed.Text)
				}
				joined := x.join(streamed.Body.Array())
				if !gjson.Valid(joined) || !reflect.DeepEqual(plain.Body.Value(), gjson.Parse(joined).Value()) {
					t.Errorf("joined it is\n%s\nand plain\n%s\nof %s", joined, plain.Text, streamed.Text)
				}
				for name, values := range plain.Header {
					if name != "Content-Type" && !reflect.DeepEqual(values, streamed.Header[name]) {
						t.Errorf("%s: %q, and %q on a plain answer", name, streamed.Header[name], values)
					}
				}
				if !reflect.DeepEqual(one.Books(), other.Books()) {
					t.Errorf("books %+v, and %+v of a plain answer", other.Books(), one.Books())
				}
			}
		})
	}
}

// The events of a stream have their makers' names and order, and no more than an end mark.
func TestStreamsHaveTheirEvents(t *testing.T) {
	for _, x := range streamers {
		t.Run(x.name, func(t *testing.T) {
			a, _ := x.ask(t, sim.Config{}, true, "hello")
			var names []string
			for i, e := range a.Body.Array() {
				name := e.Get("type").Str
				if x.contentType == frames {
					e.ForEach(func(key, _ gjson.Result) bool { name = key.Str; return true })
				} else if name != "" && !strings.Contains(a.Text, "event: "+name+"\ndata: "+e.Raw+"\n\n") {
					t.Errorf("event %d, %s, is not named so", i, name)
				}
				names = append(names, name)
			}
			first, last, _ := strings.Cut(x.names, "…")
			if got := strings.Join(names, " "); x.names != "" && (!strings.HasPrefix(got, first) || !strings.HasSuffix(got, last)) {
				t.Errorf("events %s", got)
			}
			if done := strings.HasSuffix(a.Text, "\ndata: [DONE]\n\n"); done != (x.names == "" && x.contentType == sse) {
				t.Errorf("[DONE] at its end: %v", done)
			}
			if x.name == "responses" {
				for i, e := range a.Body.Array() {
					if e.Get("sequence_number").Raw != fmt.Sprint(i) {
						t.Errorf("event %d has the number %s", i, e.Get("sequence_number"))
					}
				}
			}
		})
	}
}

// The chunks of a chat have no usage unless it is asked for; then it is null in all but the last.
func TestUsageOfChunks(t *testing.T) {
	for options, want := range map[string]bool{`"stream":true`: false, `"stream":true,"stream_options":{"include_usage":false}`: false, `"stream_options":{"include_usage":true},"stream":true`: true} {
		x := streamers[0]
		x.asks = options
		a, _ := x.ask(t, sim.Config{}, true, "hello")
		chunks := a.Body.Array()
		last := len(chunks) - 1
		for i, c := range chunks {
			if u := c.Get("usage"); u.Exists() != want || want && u.IsObject() != (i == last) || want && (c.Get("choices.#").Num == 0) != (i == last) {
				t.Errorf("%s: chunk %d of %d: %s", options, i, last, c.Raw)
			}
		}
	}
}

// An answer that is cut at its bound says so in the stream too.
func TestBoundedStreams(t *testing.T) {
	for name, body := range map[string]string{
		"chat": gpt3, "completions": `{"model":"m","max_tokens":3,"prompt":["one",%s]}`, "responses": `{"model":"m","max_output_tokens":3,"input":%s}`,
		"messages": claude3, "gemini": google3, "converse": rock3,
	} {
		for _, x := range streamers {
			if x.body = body; x.name == name {
				plain, _ := x.ask(t, sim.Config{}, false, "one")
				a, _ := x.ask(t, sim.Config{}, true, "one")
				if joined := x.join(a.Body.Array()); !reflect.DeepEqual(plain.Body.Value(), gjson.Parse(joined).Value()) {
					t.Errorf("%s: joined it is\n%s\nand plain\n%s", name, joined, plain.Text)
				}
			}
		}
	}
}

// Before its first byte a stream fails as a plain call does, byte for byte but for its model's word.
func TestRefusedStreams(t *testing.T) {
	for _, x := range streamers {
		for kind, cfg := range map[sim.Kind]sim.Config{
			sim.Unauthorized: {Keys: []string{"another"}}, sim.TooLarge: {TPM: .5, RetryAfter: sim.Always, Headers: true}, sim.ModelNotFound: {Models: []string{"another"}},
			sim.Overloaded: {Errors: sim.Rates{Overloaded503: 1}}, sim.ServerError: {Errors: sim.Rates{Server500: 1}}, sim.BadRequest: {Errors: sim.Rates{BadRequest400: 1}},
		} {
			plain, one := x.ask(t, cfg, false, "hello")
			a, other := x.ask(t, cfg, true, "hello")
			said := strings.ReplaceAll(a.Text, "streamGenerateContent", "generateContent")
			if a.Status != plain.Status || said != plain.Text || !reflect.DeepEqual(a.Header, plain.Header) || !reflect.DeepEqual(one.Books(), other.Books()) {
				t.Errorf("%s: %s: %d %v %s\nand plain %d %v %s", x.name, kind, a.Status, a.Header, a.Text, plain.Status, plain.Header, plain.Text)
			}
		}
	}
}

// A failure within a stream stands in the middle, in the words of the dialect, and nothing follows it.
// A plain call that draws it is answered.
func TestFailuresWithinStreams(t *testing.T) {
	cfg := sim.Config{Errors: sim.Rates{StreamError: 1}}
	for _, x := range streamers {
		whole, _ := x.ask(t, sim.Config{}, true, "hello")
		a, s := x.ask(t, cfg, true, "hello")
		events, all := a.Body.Array(), whole.Body.Array()
		last := len(events) - 1
		if !events[last].Get(x.failure).Exists() || last < 3 || last > len(all)*2/3 || a.Status != 200 || strings.Contains(a.Text, "[DONE]") {
			t.Errorf("%s: %d of %d events: %s", x.name, last, len(all), a.Text)
		}
		for i, e := range events {
			if n := e.Get("sequence_number"); n.Exists() && n.Raw != fmt.Sprint(i) {
				t.Errorf("%s: event %d has the number %s", x.name, i, n.Raw)
			}
		}
		if b := s.Books(); b.Errors[sim.StreamError] != 1 || b.Accepted != 0 || b.ChargedRequests != 1 {
			t.Errorf("%s: %+v", x.name, b)
		}
		plain, s := x.ask(t, cfg, false, "hello")
		if b := s.Books(); plain.Status != 200 || b.Accepted != 1 || len(b.Errors) != 0 {
			t.Errorf("%s: %d %+v", x.name, plain.Status, b)
		}
	}
}

func joinChat(chunks []gjson.Result) string {
	first, last, text, finish := chunks[0], chunks[len(chunks)-1], "", ""
	for _, c := range chunks {
		choice := c.Get("choices.0")
		text += choice.Get("delta.content").Str
		if f := choice.Get("finish_reason"); f.Type == gjson.String {
			finish = f.Raw
		}
	}
	return fmt.Sprintf(`{"id":%s,"object":"chat.completion","created":%s,"model":%s,"choices":[{"index":0,"message":{"role":%s,"content":%s,"refusal":%s},"logprobs":null,"finish_reason":%s}],"usage":%s,"system_fingerprint":%s}`,
		first.Get("id").Raw, first.Get("created").Raw, first.Get("model").Raw, first.Get("choices.0.delta.role").Raw, face.Quote(text),
		first.Get("choices.0.delta.refusal").Raw, finish, last.Get("usage").Raw, first.Get("system_fingerprint").Raw)
}

func joinTexts(chunks []gjson.Result) string {
	first, last := chunks[0], chunks[len(chunks)-1]
	var texts, finishes [2]string
	for _, c := range chunks {
		c.Get("choices").ForEach(func(_, choice gjson.Result) bool {
			i := choice.Get("index").Int()
			texts[i] += choice.Get("text").Str
			finishes[i] = choice.Get("finish_reason").Raw
			return true
		})
	}
	choice := func(i int) string {
		return fmt.Sprintf(`{"text":%s,"index":%d,"logprobs":null,"finish_reason":%s}`, face.Quote(texts[i]), i, finishes[i])
	}
	return fmt.Sprintf(`{"id":%s,"object":%s,"created":%s,"model":%s,"choices":[%s,%s],"usage":%s,"system_fingerprint":"sim"}`,
		first.Get("id").Raw, first.Get("object").Raw, first.Get("created").Raw, first.Get("model").Raw, choice(0), choice(1), last.Get("usage").Raw)
}

// joinResponse is the last event's response, if the deltas are its text.
func joinResponse(events []gjson.Result) string {
	text := ""
	for _, e := range events {
		text += e.Get("delta").Str
		if whole := e.Get("text"); whole.Exists() && whole.Str != text {
			return ""
		}
	}
	whole := events[len(events)-1].Get("response")
	if whole.Get("output.0.content.0.text").Str != text || events[0].Get("response.id").Raw != whole.Get("id").Raw {
		return ""
	}
	return whole.Raw
}

func joinMessage(events []gjson.Result) string {
	message := events[0].Get("message")
	var blocks, kinds []string
	signature, text := "", ""
	for _, e := range events {
		delta := e.Get("delta")
		text += delta.Get("text").Str + delta.Get("thinking").Str
		signature += delta.Get("signature").Str
		switch e.Get("type").Str {
		case "content_block_start":
			kinds = append(kinds, e.Get("content_block.type").Str)
		case "content_block_stop":
			kind := kinds[e.Get("index").Int()]
			block := fmt.Sprintf(`{"type":"%s","%s":%s`, kind, kind, face.Quote(text))
			if signature != "" {
				block += fmt.Sprintf(`,"signature":"%s"`, signature)
			}
			blocks, text, signature = append(blocks, block+"}"), "", ""
		}
	}
	end := events[len(events)-2]
	usage := strings.Replace(message.Get("usage").Raw, `"output_tokens":1`, `"output_tokens":`+end.Get("usage.output_tokens").Raw, 1)
	return fmt.Sprintf(`{"id":%s,"type":"message","role":%s,"model":%s,"content":[%s],"stop_reason":%s,"stop_sequence":%s,"usage":%s}`,
		message.Get("id").Raw, message.Get("role").Raw, message.Get("model").Raw, strings.Join(blocks, ","), end.Get("delta.stop_reason").Raw, end.Get("delta.stop_sequence").Raw, usage)
}

// joinGemini is the last chunk with the text of all.
func joinGemini(chunks []gjson.Result) string {
	last, texts := chunks[len(chunks)-1], map[bool]string{}
	for _, c := range chunks {
		part := c.Get("candidates.0.content.parts.0")
		texts[part.Get("thought").Bool()] += part.Get("text").Str
	}
	parts := fmt.Sprintf(`[{"text":%s}]`, face.Quote(texts[false]))
	if texts[true] != "" {
		parts = fmt.Sprintf(`[{"text":%s,"thought":true},`, face.Quote(texts[true])) + parts[1:]
	}
	return strings.Replace(last.Raw, last.Get("candidates.0.content.parts").Raw, parts, 1)
}

func joinConverse(events []gjson.Result) string {
	text := ""
	for _, e := range events {
		text += e.Get("contentBlockDelta.delta.text").Str
	}
	end, metadata := events[len(events)-2], events[len(events)-1].Get("metadata")
	return fmt.Sprintf(`{"metrics":%s,"output":{"message":{"content":[{"text":%s}],"role":%s}},"stopReason":%s,"usage":%s}`,
		metadata.Get("metrics").Raw, face.Quote(text), events[0].Get("messageStart.role").Raw, end.Get("messageStop.stopReason").Raw, metadata.Get("usage").Raw)
}
