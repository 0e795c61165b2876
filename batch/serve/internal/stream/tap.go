package stream

import (
	"bytes"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// maxKept is the most that a tap keeps of an event, in bytes. Those with the usage have some
// hundred; longer ones hold pictures.
const maxKept = 64 << 10

// A Tap reads a stream of server-sent events, or one of another form through a splitter. Its zero value
// is for server-sent events.
type Tap struct {
	splitter stream.Splitter // nil: server-sent events
	blind    bool            // the splitter has failed, or held too much
	line     []byte          // the beginning of a line
	long     bool            // the line is too long to be kept
	inEvent  bool            // some line of an event has come, and not its end

	usage  provider.Usage
	has    bool
	finish string
}

// Over returns a tap for events in the form of a splitter.
func Over(s stream.Splitter) *Tap { return &Tap{splitter: s} }

// Usage returns what the stream has said of its tokens.
func (t *Tap) Usage() (provider.Usage, bool) { return t.usage, t.has }

// Finish returns the provider's word for the end of the answer; "": it has said none.
func (t *Tap) Finish() string { return t.finish }

// Between reports whether the bytes so far end between two events, of server-sent ones.
func (t *Tap) Between() bool { return t.splitter == nil && !t.inEvent && !t.long && len(t.line) == 0 }

// Write takes the next bytes.
func (t *Tap) Write(p []byte) {
	if t.splitter != nil {
		if t.blind = t.blind || t.splitter.Write(p, t.take) != nil || t.splitter.Buffered() > maxKept; t.blind {
			t.splitter = blank{}
		}
		return
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			t.keep(p)
			return
		}
		t.keep(p[:end])
		p = p[end+1:]
		t.endLine()
	}
}

// keep adds to the line, unless it becomes too long.
func (t *Tap) keep(p []byte) {
	if t.long = t.long || len(t.line)+len(p) > maxKept; t.long {
		t.line = nil
		return
	}
	t.line = append(t.line, p...)
}

// endLine reads a line that has come whole.
func (t *Tap) endLine() {
	line := bytes.TrimSuffix(t.line, []byte{'\r'})
	t.inEvent = t.long || len(line) > 0
	if data, is := bytes.CutPrefix(line, []byte("data:")); is && !t.long {
		_ = t.take(stream.Event{Data: data}) // it never fails
	}
	t.line, t.long = t.line[:0], false
}

// telling are parts of events with a usage or an end. Nearly all events of a stream have neither, and
// are not parsed.
var telling = [][]byte{[]byte(`"usage`), []byte(`finish`), []byte(`stop_reason"`), []byte(`stopReason"`)}

// take reads an event.
func (t *Tap) take(e stream.Event) error {
	tells := false
	for _, part := range telling {
		tells = tells || bytes.Contains(e.Data, part)
	}
	object := rawjson.Trim(e.Data)
	if !tells || !rawjson.IsObject(object) || !rawjson.Valid(object) {
		return nil
	}
	for w := rawjson.WalkIn(object); w.Next(); {
		name := string(w.Name)
		switch value := w.Skip(); name {
		case "usage", "usageMetadata":
			t.count(value)
		case "message", "response": // of Anthropic's first event, and of Responses' last
			t.count(rawjson.Lookup(value, "usage"))
		case "choices", "candidates":
			first := rawjson.First(value)
			t.ends(rawjson.Lookup(first, "finish_reason"))
			t.ends(rawjson.Lookup(first, "finishReason"))
		case "delta":
			t.ends(rawjson.Lookup(value, "stop_reason"))
		case "stopReason":
			t.ends(value)
		}
	}
	return nil
}

// count takes counts, each of which stands for the whole answer so far: the greater one counts.
func (t *Tap) count(object []byte) {
	if !rawjson.IsObject(object) {
		return
	}
	u, has := provider.UsageIn(object)
	if !has {
		return
	}
	t.has = true
	for _, n := range [...]struct{ to, from *int64 }{
		{&t.usage.InputTokens, &u.InputTokens},
		{&t.usage.OutputTokens, &u.OutputTokens},
		{&t.usage.CachedTokens, &u.CachedTokens},
		{&t.usage.CacheWriteTokens, &u.CacheWriteTokens},
		{&t.usage.ReasoningTokens, &u.ReasoningTokens},
		{&t.usage.LongWriteTokens, &u.LongWriteTokens},
	} {
		*n.to = max(*n.to, *n.from)
	}
	if u.HasTold {
		t.usage.Told, t.usage.HasTold = u.Told, true
	}
	if u.Tier != 0 {
		t.usage.Tier = u.Tier
	}
}

func (t *Tap) ends(word []byte) {
	if rawjson.IsString(word) {
		t.finish = string(rawjson.Unquote(word))
	}
}

// blank is a splitter that takes everything and finds nothing.
type blank struct{}

func (blank) Write([]byte, func(stream.Event) error) error { return nil }
func (blank) Close(func(stream.Event) error) error         { return nil }
func (blank) Buffered() int                                { return 0 }
