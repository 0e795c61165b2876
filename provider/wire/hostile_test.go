package wire_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/wire"
)

// A hostile stream is a recorded one that somebody has spoilt.
type hostile struct {
	name  string
	of    string // the recording
	spoil func([]string) []string
	then  string // after the events: "" ends the body, "abort" the connection, "hang" nothing, "endless" more and more of the last event

	kind  provider.Kind // of the error; Unknown: it is an answer all the same
	says  string        // in the error
	usage provider.Usage
}

func replace(from, to string) func([]string) []string {
	return func(events []string) []string {
		for i := range events {
			if strings.Contains(events[i], from) {
				events[i] = strings.Replace(events[i], from, to, 1)
				return events
			}
		}
		panic("no " + from)
	}
}

// cut keeps n events, or all but so many.
func cut(n int) func([]string) []string {
	return func(events []string) []string { return events[:(n+len(events))%len(events)] }
}

func double(i int) func([]string) []string {
	return func(events []string) []string {
		return append(append(append([]string{}, events[:i+1]...), events[i]), events[i+1:]...)
	}
}

func swap(i, j int) func([]string) []string {
	return func(events []string) []string { events[i], events[j] = events[j], events[i]; return events }
}

// put puts an event before the one of that number, and leaves out what follows.
func put(i int, event string) func([]string) []string {
	return func(events []string) []string { return append(append([]string{}, events[:i]...), event) }
}

func data(text string) string { return "data: " + text + "\n\n" }

func exception(name, payload string) string { return string(frame("exception", name, []byte(payload))) }

var (
	counted = provider.Usage{InputTokens: 9, OutputTokens: 7, CachedTokens: 4, ReasoningTokens: 2} // by the end of chat.sse
	usage25 = provider.Usage{InputTokens: 28, OutputTokens: 1, CacheWriteTokens: 3}                // by the start of messages.sse
	usage8  = provider.Usage{InputTokens: 8, OutputTokens: 4, ReasoningTokens: 4}                  // by the second chunk of gemini.sse
)

const broken = provider.TransportFault

var hostiles = []hostile{
	{name: "nothing", of: "chat", spoil: cut(0), kind: broken, says: "ended before"},
	{name: "empty words until the end of a choice", of: "chat", spoil: func(e []string) []string {
		for i := range e {
			e[i] = strings.Replace(e[i], `"finish_reason":null`, `"finish_reason":""`, 1)
		}
		return e
	}},
	{name: "an empty word at the end of a choice", of: "chat", spoil: replace(`"finish_reason":"stop"`, `"finish_reason":""`), kind: broken, says: "no end", usage: counted},
	{name: "no end mark", of: "chat", spoil: cut(-1), kind: broken, says: "ended before", usage: counted},
	{name: "cut after two", of: "chat", spoil: cut(2), kind: broken, says: "ended before"},
	{name: "connection lost", of: "chat", spoil: cut(3), then: "abort", kind: broken},
	{name: "connection lost before anything", of: "chat", spoil: cut(0), then: "abort", kind: broken},
	{name: "silent after two", of: "chat", spoil: cut(2), then: "hang", kind: broken, says: "silent"},
	{name: "silent after the end mark", of: "chat", spoil: swap(0, 0), then: "hang"},
	{name: "more after the end mark", of: "chat", spoil: func(e []string) []string { return append(e, data("{"), data("[DONE]")) }},
	{name: "cut within a chunk", of: "chat", spoil: put(2, `data: {"id":"chatcmpl-1","choi`), kind: broken},
	{name: "bad JSON", of: "chat", spoil: replace(`"index":0,`, `"index":0,,`), kind: broken, says: "not a JSON object"},
	{name: "a list in place of a chunk", of: "chat", spoil: put(1, data(`[1,2]`)), kind: broken},
	{name: "prose in place of a chunk", of: "chat", spoil: put(1, data(`hello`)), kind: broken},
	{name: "bad UTF-8", of: "chat", spoil: replace(`Gr\u00fc`, "Gr\xfc"), kind: broken, says: "UTF-8"},
	{name: "half a character in each of two", of: "chat", spoil: func(e []string) []string { return replace(`\ude00`, "\x98\x80")(replace(` \ud83d`, "\xf0\x9f")(e)) }, kind: broken, says: "UTF-8"},
	{name: "no end of a choice", of: "chat", spoil: replace(`"finish_reason":"stop"`, `"finish_reason":null`), kind: broken, says: "no end", usage: counted},
	{name: "goes on after the end", of: "chat", spoil: swap(3, 4), kind: broken, says: "after its end"},
	{name: "content that changes its kind", of: "chat", spoil: replace(`"content":" \ud83d"`, `"content":{"a":1}`), kind: broken, says: "kind"},
	{name: "a delta that is none", of: "chat", spoil: replace(`"delta":{}`, `"delta":7`), kind: broken},
	{name: "a choice that is none", of: "chat", spoil: replace(`"choices":[{`, `"choices":[7,{`), kind: broken},
	{name: "choices without end", of: "chat", spoil: put(1, data(`{"choices":[`+many(`{"index":#}`)+`]}`)), kind: broken, says: "too many"},
	{name: "members without end", of: "chat", spoil: put(1, data(`{"choices":[],`+many(`"m#":1`)+`}`)), kind: broken, says: "too many"},
	{name: "an error in the middle", of: "chat", spoil: put(2, data(`{"error":{"message":"The server had an error","type":"server_error","code":null}}`)), kind: provider.Server, says: "had an error"},
	{name: "a rate limit in the middle", of: "chat", spoil: put(2, data(`{"error":{"message":"Rate limit reached","type":"rate_limit_error","code":"rate_limit_exceeded"}}`)), kind: provider.Throttled},
	{name: "no balance in the middle", of: "chat", spoil: put(2, data(`{"error":{"message":"no","type":"insufficient_quota","code":"insufficient_quota"}}`)), kind: provider.QuotaExhausted},
	{name: "OpenRouter's error in the middle", of: "chat", spoil: put(2, data(`{"id":"c","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`)), kind: provider.Server, says: "disconnected"},
	{name: "an error by the event's name", of: "chat", spoil: put(2, "event: error\n"+data(`{"code":"rate_limit_exceeded","message":"too fast"}`)), kind: provider.Throttled},
	{name: "vLLM's error in the middle", of: "chat", spoil: put(2, data(`{"object":"error","message":"too long","type":"BadRequestError","code":400}`)), kind: provider.Invalid},
	{name: "endless answer", of: "chat", spoil: cut(3), then: "endless", kind: provider.Invalid, says: "longer than allowed"},
	{name: "endless comments", of: "chat", spoil: put(1, ": still working\n"), then: "endless", kind: broken, says: "far more bytes"},
	{name: "endless line", of: "chat", spoil: put(1, "data: "+strings.Repeat("x", 100)), then: "endless", kind: provider.Invalid, says: "longer than allowed"},
	{name: "a name of an event without end", of: "chat", spoil: put(1, "event: "+strings.Repeat("x", 100)), then: "endless", kind: provider.Invalid},
	{name: "endless blank lines", of: "chat", spoil: put(1, "\n\n\n\n\n\n\n\n"), then: "endless", kind: broken, says: "far more bytes"},
	{name: "endless data lines of one event", of: "chat", spoil: put(1, "data: 1234567\n"), then: "endless", kind: provider.Invalid},
	{name: "an endless tool call", of: "chat-tools", spoil: cut(3), then: "endless", kind: provider.Invalid, says: "longer than allowed"},

	{name: "no completed", of: "responses", spoil: cut(-1), kind: broken, says: "ended before"},
	{name: "completed without a response", of: "responses", spoil: put(4, data(`{"type":"response.completed"}`)), kind: broken, says: "ended before"},
	{name: "failed", of: "responses", spoil: put(4, data(`{"type":"response.failed","response":{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"oh"},"output":[]}}`)), kind: provider.Server, says: "oh"},
	{name: "failed for a rate", of: "responses", spoil: put(4, data(`{"type":"response.failed","response":{"id":"r","object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"oh"},"output":[{"type":"message"}]}}`)), kind: provider.Throttled},
	{name: "an error event", of: "responses", spoil: put(2, data(`{"type":"error","code":"rate_limit_exceeded","message":"too fast","param":null,"sequence_number":2}`)), kind: provider.Throttled},
	{name: "endless deltas of nothing", of: "responses", spoil: cut(4), then: "endless", kind: broken, says: "far more bytes"},

	{name: "no stop", of: "messages", spoil: cut(-1), kind: broken, says: "ended before", usage: provider.Usage{InputTokens: 28, OutputTokens: 89, CacheWriteTokens: 3}},
	{name: "a stop without a reason", of: "messages", spoil: replace(`"stop_reason":"tool_use"`, `"stop_reason":null`), kind: broken, says: "ended before", usage: provider.Usage{InputTokens: 28, OutputTokens: 89, CacheWriteTokens: 3}},
	{name: "cut after the start", of: "messages", spoil: cut(1), kind: broken, says: "ended before", usage: usage25},
	{name: "connection lost after the start", of: "messages", spoil: cut(1), then: "abort", kind: broken, usage: usage25},
	{name: "silent after the start", of: "messages", spoil: cut(1), then: "hang", kind: broken, says: "silent", usage: usage25},
	{name: "two starts", of: "messages", spoil: double(0), kind: broken, says: "starts twice", usage: usage25},
	{name: "no start", of: "messages", spoil: func(e []string) []string { return e[1:] }, kind: broken, says: "not started"},
	{name: "a block starts twice", of: "messages", spoil: double(1), kind: broken, says: "out of order", usage: usage25},
	{name: "a block that has stopped goes on", of: "messages", spoil: swap(5, 6), kind: broken, says: "out of order", usage: usage25},
	{name: "a delta before its block", of: "messages", spoil: swap(1, 3), kind: broken, says: "out of order", usage: usage25},
	{name: "a tool's input is cut", of: "messages", spoil: replace(`Francisco\\n\"}`, `Francisco`), kind: broken, says: "not JSON", usage: usage25},
	{name: "a block that does not stop", of: "messages", spoil: func(e []string) []string { return append(e[:len(e)-3:len(e)-3], e[len(e)-2:]...) }, kind: broken, says: "ended before", usage: provider.Usage{InputTokens: 28, OutputTokens: 89, CacheWriteTokens: 3}},
	{name: "overloaded in the middle", of: "messages", spoil: put(4, "event: error\n"+data(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)), kind: provider.Overloaded, usage: usage25},
	{name: "a rate limit in the middle", of: "messages", spoil: put(4, data(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"},"request_id":"req_1"}`)), kind: provider.Throttled, usage: usage25},
	{name: "an error before anything", of: "messages", spoil: put(0, data(`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`)), kind: provider.Server},
	{name: "endless pings", of: "messages", spoil: put(1, data(`{"type":"ping"}`)), then: "endless", kind: broken, says: "far more bytes", usage: usage25},
	{name: "blocks without end", of: "messages", spoil: put(1, data(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)), then: "endless", kind: broken, says: "out of order", usage: usage25},

	{name: "no finish", of: "gemini", spoil: cut(2), kind: broken, says: "ended before", usage: usage8},
	{name: "goes on after the finish", of: "gemini", spoil: swap(3, 4), kind: broken, says: "after its end", usage: provider.Usage{InputTokens: 8, OutputTokens: 7, ReasoningTokens: 4}},
	{name: "unavailable in the middle", of: "gemini", spoil: put(2, data(`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`)), kind: provider.Overloaded, usage: usage8},
	{name: "a quota in the middle", of: "gemini", spoil: put(2, data(`{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}`)), kind: provider.Throttled, usage: usage8},
	{name: "a prompt that is blocked", of: "gemini", spoil: put(0, data(`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":8}}`)), kind: provider.Refused, usage: provider.Usage{InputTokens: 8}},
	{name: "parts without end", of: "gemini", spoil: cut(2), then: "endless", kind: provider.Invalid, says: "longer than allowed", usage: usage8},

	{name: "a wrong checksum", of: "converse", spoil: replace("Cited", "Sited"), kind: broken, says: "checksum"},
	{name: "a wrong checksum of a length", of: "converse", spoil: replace("\x00\x00\x00", "\x00\x00\x01"), kind: broken, says: "checksum"},
	{name: "an impossible length", of: "converse", spoil: put(1, prelude(0xffffffff, 0)), kind: broken, says: "impossible length"},
	{name: "headers longer than all", of: "converse", spoil: put(1, prelude(64, 4000)), kind: broken, says: "impossible length"},
	{name: "a cut message", of: "converse", spoil: func(e []string) []string { return append(e[:2:2], e[2][:40]) }, kind: broken, says: "ended before"},
	{name: "no metadata", of: "converse", spoil: cut(-1), kind: broken, says: "ended before"},
	{name: "metadata before the stop", of: "converse", spoil: func(e []string) []string { return swap(len(e)-2, len(e)-1)(e) }, kind: broken, says: "out of order"},
	{name: "two starts", of: "converse", spoil: double(0), kind: broken, says: "starts twice"},
	{name: "no start", of: "converse", spoil: func(e []string) []string { return e[1:] }, kind: broken, says: "not started"},
	{name: "a block that has stopped goes on", of: "converse", spoil: swap(3, 4), kind: broken, says: "out of order"},
	{name: "an earlier block goes on", of: "converse", spoil: swap(1, 6), kind: broken, says: "out of order"},
	{name: "a tool's input is cut", of: "converse", spoil: func(e []string) []string { return append(e[:13:13], e[14:]...) }, kind: broken, says: "not JSON"},
	{name: "throttled in the middle", of: "converse", spoil: put(3, exception("throttlingException", `{"message":"Too many requests"}`)), kind: provider.Throttled, says: "Too many"},
	{name: "unavailable in the middle", of: "converse", spoil: put(3, exception("serviceUnavailableException", `{"message":"no"}`)), kind: provider.Overloaded},
	{name: "the model's error in the middle", of: "converse", spoil: put(3, exception("modelStreamErrorException", `{"message":"no","originalStatusCode":429,"originalMessage":"x"}`)), kind: provider.Throttled},
	{name: "an internal error", of: "converse", spoil: put(3, exception("internalServerException", `{"message":"no"}`)), kind: provider.Server},
	{name: "not valid", of: "converse", spoil: put(3, exception("validationException", `{"message":"no"}`)), kind: provider.Invalid},
	{name: "an endless message", of: "converse", spoil: put(1, prelude(15<<20, 16)), then: "endless", kind: provider.Invalid, says: "longer than allowed"},
	{name: "connection lost", of: "converse", spoil: cut(5), then: "abort", kind: broken},
	{name: "silence", of: "converse", spoil: cut(5), then: "hang", kind: broken, says: "silent"},
}

// many are two thousand of a thing, with a number in the place of #.
func many(thing string) string {
	all := make([]string, 2000)
	for i := range all {
		all[i] = strings.ReplaceAll(thing, "#", strconv.Itoa(i))
	}
	return strings.Join(all, ",")
}

// prelude is the beginning of a message that claims these lengths, with a right checksum.
func prelude(total, headers uint32) string {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, total), headers)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// operations are those of the recordings.
var operations = map[string]provider.Request{
	"chat": {Endpoint: provider.Chat}, "chat-tools": {Endpoint: provider.Chat}, "responses": {Endpoint: provider.Responses},
	"messages": {Endpoint: provider.Messages}, "gemini": {Endpoint: provider.GenerateContent}, "converse": {Endpoint: provider.Converse},
}

func dialectOf(recording string) provider.Dialect {
	switch recording {
	case "messages":
		return anthropic.Dialect{}
	case "gemini":
		return gemini.Dialect{}
	case "converse":
		return converse.Dialect{}
	}
	return openai.Dialect{}
}

// eventsOf are a recording's, each with what ends it.
func eventsOf(t testing.TB, name string) (events []string, kind string) {
	t.Helper()
	all, kind := recording(t, name)
	if name != "converse" {
		events = strings.SplitAfter(string(all), "\n\n")
		return events[:len(events)-1], kind
	}
	for len(all) > 0 {
		n := binary.BigEndian.Uint32(all)
		events, all = append(events, string(all[:n])), all[n:]
	}
	return events, kind
}

// Each hostile stream fails as what it is, at once, and takes no more than an answer may. What
// it has told of its usage is passed on.
func TestHostileStreams(t *testing.T) {
	const most = 48 << 10 // of an answer
	for _, h := range hostiles {
		t.Run(h.of+": "+h.name, func(t *testing.T) {
			events, kind := eventsOf(t, h.of)
			events = h.spoil(events)
			sent := make(chan int64, 1)
			base := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", kind)
				n, _ := io.WriteString(w, strings.Join(events, ""))
				_ = http.NewResponseController(w).Flush()
				total := int64(n)
				defer func() { sent <- total }()
				switch h.then {
				case "abort":
					panic(http.ErrAbortHandler)
				case "hang":
					<-r.Context().Done()
				case "endless":
					more := []byte(strings.Repeat(events[len(events)-1], 1+4096/max(1, len(events[len(events)-1]))))
					for total < 1<<30 {
						n, err := w.Write(more)
						if total += int64(n); err != nil {
							return
						}
					}
				}
			})
			c := client(t, wire.Config{
				Dialect: dialectOf(h.of), BaseURL: base, Stream: wire.StreamAlways, StreamIdle: idleFor(h.then),
				MaxBody: most, HoldBodies: true,
			})
			r := operations[h.of]
			r.Model, r.Body = "m", []byte(`{"model":"m"}`)
			ctx, rec := provider.WithRecorder(t.Context())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			reply, err := c.Do(ctx, r)
			runtime.ReadMemStats(&after)
			c.CloseIdle()
			if reply.Done != nil {
				reply.Done()
			}
			if h.kind == provider.Unknown {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *provider.Error
			if !errors.As(err, &e) || e.Kind != h.kind || !strings.Contains(e.Error(), h.says) {
				t.Errorf("%v, want %v and %q", err, h.kind, h.says)
			}
			if reply.Usage != h.usage || reply.HasUsage != (h.usage != provider.Usage{}) || rec.Snapshot().Usage != h.usage {
				t.Errorf("usage %+v, recorded %+v, want %+v", reply.Usage, rec.Snapshot().Usage, h.usage)
			}
			if n := <-sent; n > 100<<20 {
				t.Errorf("%d bytes were sent", n)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; h.then == "endless" && h.kind == provider.Invalid && grown > 4<<20 {
				t.Errorf("%d bytes were allocated for an answer of at most %d", grown, most)
			}
		})
	}
	if n := len(hostiles); n < 40 {
		t.Errorf("%d hostile streams", n)
	}
}

// idleFor is a bound on silence that is met only where silence is what comes.
func idleFor(then string) time.Duration {
	if then == "hang" {
		return 300 * time.Millisecond
	}
	return time.Minute
}
