package wire_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/stream"
	"github.com/headrace/headrace/provider/wire"
)

// recorded are answers as streams and in one piece, in the files of these names.
var recorded = []struct {
	name, operation string
	dialect         provider.Streamer
}{
	{"chat", provider.Chat, openai.Dialect{}},
	{"chat-tools", provider.Chat, openai.Dialect{}},
	{"chat-many", provider.Chat, openai.Dialect{}},
	{"completions", provider.Completions, openai.Dialect{}},
	{"responses", provider.Responses, openai.Dialect{}},
	{"responses-cut", provider.Responses, openai.Dialect{}},
	{"messages", provider.Messages, anthropic.Dialect{}},
	{"messages", provider.Messages, openai.Dialect{}},
	{"gemini", provider.GenerateContent, gemini.Dialect{}},
	{"converse", provider.Converse, converse.Dialect{}},
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("testdata", "streams", name)))(t)
	return data
}

// recording is the stream of that name, and its media type.
func recording(t testing.TB, name string) (events []byte, kind string) {
	t.Helper()
	if name != "converse" {
		return read(t, name+".sse"), "text/event-stream; charset=utf-8"
	}
	for line := range bytes.Lines(read(t, name+".events")) {
		kind, payload, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		events = append(events, frame("event", string(kind), payload)...)
	}
	return events, "application/vnd.amazon.eventstream"
}

// frame is a message of Amazon's event streams, with the headers that Bedrock sends.
func frame(kind, name string, payload []byte) []byte {
	var headers []byte
	for _, h := range [][2]string{{":" + kind + "-type", name}, {":content-type", "application/json"}, {":message-type", kind}} {
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(binary.BigEndian.AppendUint16(append(headers, 7), uint16(len(h[1]))), h[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(headers)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func serve(t testing.TB, answer http.HandlerFunc) string {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func client(t testing.TB, cfg wire.Config) *wire.Client {
	t.Helper()
	c := must.Get(wire.New(cfg))(t)
	t.Cleanup(c.CloseIdle)
	return c
}

// plainly is a JSON value without regard to the order of members.
func plainly(t testing.TB, body []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

// A stream is put together into the answer that the plain endpoint sends, with its usage, its
// end and its text.
func TestStreamsArePlainAnswers(t *testing.T) {
	for _, one := range recorded {
		t.Run(one.name+" in "+one.dialect.Name(), func(t *testing.T) {
			whole := read(t, one.name+".json")
			events, kind := recording(t, one.name)
			asked := 0
			base := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if bytes.Contains(body, []byte(`"stream":true`)) || strings.Contains(r.URL.String(), "stream") {
					asked++
					w.Header().Set("Content-Type", kind)
					_, _ = w.Write(events)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(whole)
			})
			r := provider.Request{Endpoint: one.operation, Model: "m", Body: []byte(`{"model":"m","max_tokens":9}`)}
			ctx, rec := provider.WithRecorder(t.Context())
			plain, err := client(t, wire.Config{Dialect: one.dialect, BaseURL: base, Text: true}).Do(ctx, r)
			if err != nil || asked != 0 {
				t.Fatal(err, asked)
			}
			streamContext, streamRec := provider.WithRecorder(t.Context())
			streamed, err := client(t, wire.Config{Dialect: one.dialect, BaseURL: base, Text: true, Stream: wire.StreamAlways}).Do(streamContext, r)
			if err != nil || asked != 1 {
				t.Fatal(err, asked)
			}
			if !reflect.DeepEqual(plainly(t, streamed.Body), plainly(t, plain.Body)) {
				t.Errorf("the stream is\n%s, plain it is\n%s", streamed.Body, plain.Body)
			}
			if !plain.HasUsage || streamed.Usage != plain.Usage || streamed.Finish != plain.Finish || streamed.Text != plain.Text || plain.Finish == "" {
				t.Errorf("the stream is %+v, plain it is %+v", streamed, plain)
			}
			if a, b := streamRec.Snapshot(), rec.Snapshot(); a.Usage != b.Usage || a.Finish != b.Finish || !b.HasUsage {
				t.Errorf("recorded: %+v and %+v", a, b)
			}
		})
	}
}

// together puts a stream together that is read in pieces of these lengths.
func together(d provider.Streamer, operation string, events []byte, lengths ...int) ([]byte, error) {
	splitter, assembler := d.Stream(operation)
	last := false
	add := func(e stream.Event) (err error) {
		if !last {
			last, err = assembler.Add(e)
		}
		return err
	}
	for i := 0; len(events) > 0; i++ {
		n := len(events)
		if len(lengths) > 0 {
			n = min(n, max(1, lengths[i%len(lengths)]))
		}
		if err := splitter.Write(bytes.Clone(events[:n]), add); err != nil {
			return nil, err
		}
		events = events[n:]
	}
	if err := splitter.Close(add); err != nil {
		return nil, err
	}
	return assembler.Body()
}

// Wherever the bytes of a stream are split, the answer is the same.
func FuzzSplits(f *testing.F) {
	for i := range recorded {
		f.Add(uint8(i), uint8(1), uint8(1), uint8(1))
		f.Add(uint8(i), uint8(7), uint8(100), uint8(3))
	}
	f.Fuzz(func(t *testing.T, which, a, b, c uint8) {
		one := recorded[int(which)%len(recorded)]
		events, _ := recording(t, one.name)
		want := must.Get(together(one.dialect, one.operation, events))(t)
		got, err := together(one.dialect, one.operation, events, int(a), int(b), int(c))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s in pieces of %d, %d and %d: %v\n%s", one.name, a, b, c, err, got)
		}
	})
}

// A stream that ends anywhere before its end is no answer, and lines may end in any way.
func TestCutsAndLineEnds(t *testing.T) {
	for _, one := range recorded {
		events, kind := recording(t, one.name)
		whole, err := together(one.dialect, one.operation, events)
		if err != nil {
			t.Fatal(one.name, err)
		}
		trimmed := len(bytes.TrimRight(events, "\n"))
		for cut := 0; cut < trimmed; cut += 1 + cut%5 {
			if body, err := together(one.dialect, one.operation, events[:cut]); err == nil && !bytes.Equal(body, whole) {
				t.Fatalf("%s: cut after %d bytes of %d it is %s", one.name, cut, trimmed, body)
			}
		}
		if !strings.HasPrefix(kind, "text/") {
			continue
		}
		for _, end := range []string{"\r\n", "\r", "\r\n\n"} { // the last ends events, too
			other := append([]byte("\xef\xbb\xbf"), bytes.ReplaceAll(events, []byte("\n"), []byte(end))...)
			for _, length := range []int{1, 64, len(other)} {
				if got, err := together(one.dialect, one.operation, other, length); err != nil || !bytes.Equal(got, whole) {
					t.Errorf("%s, lines end in %q: %v\n%s", one.name, end, err, got)
				}
			}
		}
	}
}

// A stream that is whole leaves its connection to the next.
func TestStreamsShareAConnection(t *testing.T) {
	events, kind := recording(t, "chat")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(events)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(20 * time.Millisecond) // so that the end comes by itself
	}))
	var connections atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := client(t, wire.Config{Dialect: openai.Dialect{}, BaseURL: server.URL, Stream: wire.StreamAlways})
	for range 5 {
		must.Get(c.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Body: []byte(`{}`)}))(t)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// BenchmarkStream puts an answer of a thousand events together: its text grows, and nothing that
// has come is read again.
func BenchmarkStream(b *testing.B) {
	var events bytes.Buffer
	for range 1000 {
		events.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aZ"}` + "\n\n")
	}
	events.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	b.SetBytes(int64(events.Len()))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(together(openai.Dialect{}, provider.Chat, events.Bytes()))(b)
	}
}

// A server that packs what it was asked not to pack is understood all the same, whether it streams
// or answers in one piece.
func TestPackedStreams(t *testing.T) {
	events, kind := eventsOf(t, "chat")
	const plain = `{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`
	for name, c := range map[string]struct {
		kind, body string
		packed     bool
		fault      bool
	}{
		"a stream":               {kind, strings.Join(events, ""), true, false},
		"one piece":              {"application/json", plain, true, false},
		"a stream that is a lie": {kind, strings.Join(events, ""), false, true},
	} {
		base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", c.kind)
			w.Header().Set("Content-Encoding", "gzip")
			if !c.packed {
				_, _ = io.WriteString(w, c.body)
				return
			}
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, c.body)
			_ = z.Close()
		})
		cl := client(t, wire.Config{Dialect: openai.Dialect{}, BaseURL: base, Stream: wire.StreamAlways})
		reply, err := cl.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Body: []byte(`{"model":"m"}`)})
		cl.CloseIdle()
		if c.fault != errors.Is(err, provider.TransportFault) || !c.fault && (err != nil || !strings.Contains(string(reply.Body), `"finish_reason":"stop"`)) {
			t.Errorf("%s: %s, %v", name, reply.Body, err)
		}
	}
}

// A stream that has told what it used before it broke, fell silent or ended in an error is doubtful.
// One that is an error from its beginning on is a refusal.
func TestBrokenStreamsAreDoubtful(t *testing.T) {
	const (
		begins = "event: message_start\ndata: " + `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"c","usage":{"input_tokens":25,"output_tokens":1}}}` + "\n\n"
		fails  = "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
	)
	want := provider.Doubtful{Calls: 1, Usage: provider.Usage{InputTokens: 25, OutputTokens: 1}}
	for name, c := range map[string]struct {
		text   string
		silent bool
		want   provider.Doubtful
	}{
		"broken off":                     {begins, false, want},
		"silent":                         {begins, true, want},
		"an error in the middle":         {begins + fails, false, want},
		"an error from the beginning on": {fails, false, provider.Doubtful{}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, c.text)
			_ = http.NewResponseController(w).Flush()
			if c.silent {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		}))
		t.Cleanup(server.Close)
		client, err := wire.New(wire.Config{Dialect: anthropic.Dialect{}, BaseURL: server.URL, Stream: wire.StreamAlways, StreamIdle: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdle)
		ctx, rec := provider.WithRecorder(t.Context())
		_, err = client.Do(ctx, provider.Request{Endpoint: provider.Messages, Model: "c", Body: []byte(`{"model":"c","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`)})
		record := rec.Snapshot()
		if got := record.Doubtful(err); got != c.want {
			t.Errorf("%s: %+v, want %+v of %+v", name, got, c.want, err)
		}
	}
}
