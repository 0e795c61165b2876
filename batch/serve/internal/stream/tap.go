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
	splitter    stream.Splitter // nil: server-sent events
	blind       bool            // the splitter has failed, or held too much
	line        []byte          // the beginning of a line
	lineTooLong bool            // the line is too long to be kept
	inEvent     bool            // some line of an event has come, and not its end

	usage    provider.Usage
	hasUsage bool
	finish   string
}

// Over returns a tap for events in the form of a splitter.
func Over(s stream.Splitter) *Tap { return &Tap{splitter: s} }

// Usage returns what the stream has said of its tokens.
func (t *Tap) Usage() (provider.Usage, bool) { return t.usage, t.hasUsage }

// Finish returns the provider's word for the end of the answer; "": it has said none.
func (t *Tap) Finish() string { return t.finish }

// Between reports whether the bytes so far end between two events, of server-sent ones.
func (t *Tap) Between() bool {
	return t.splitter == nil && !t.inEvent && !t.lineTooLong && len(t.line) == 0
}

// Write takes the next bytes.
func (t *Tap) Write(p []byte) {
	if t.splitter != nil {
		if t.blind = t.blind || t.splitter.Write(p, t.readEvent) != nil || t.splitter.Buffered() > maxKept; t.blind {
			t.splitter = nullSplitter{}
		}
		return
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			t.appendToLine(p)
			return
		}
		t.appendToLine(p[:end])
		p = p[end+1:]
		t.endLine()
	}
}

// appendToLine adds bytes to the current line, unless the line becomes too long.
func (t *Tap) appendToLine(p []byte) {
	if t.lineTooLong = t.lineTooLong || len(t.line)+len(p) > maxKept; t.lineTooLong {
		t.line = nil
		return
	}
	t.line = append(t.line, p...)
}

// endLine reads a line that has come whole.
func (t *Tap) endLine() {
	line := bytes.TrimSuffix(t.line, []byte{'\r'})
	t.inEvent = t.lineTooLong || len(line) > 0
	if data, is := bytes.CutPrefix(line, []byte("data:")); is && !t.lineTooLong {
		_ = t.readEvent(stream.Event{Data: data}) // it never fails
	}
	t.line, t.lineTooLong = t.line[:0], false
}

// usageOrEndMarks are parts of events with a usage or an end. Nearly all events of a stream have neither, and
// are not parsed.
var usageOrEndMarks = [][]byte{[]byte(`"usage`), []byte(`finish`), []byte(`stop_reason"`), []byte(`stopReason"`)}

// readEvent reads the usage and the end of the answer from an event that has them.
func (t *Tap) readEvent(e stream.Event) error {
	tells := false
	for _, part := range usageOrEndMarks {
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
			t.addUsage(value)
		case "message", "response": // of Anthropic's first event, and of Responses' last
			t.addUsage(rawjson.Lookup(value, "usage"))
		case "choices", "candidates":
			first := rawjson.First(value)
			t.setFinish(rawjson.Lookup(first, "finish_reason"))
			t.setFinish(rawjson.Lookup(first, "finishReason"))
		case "delta":
			t.setFinish(rawjson.Lookup(value, "stop_reason"))
		case "stopReason":
			t.setFinish(value)
		}
	}
	return nil
}

// addUsage takes the greater of each count: an event's counts stand for the whole answer so far.
func (t *Tap) addUsage(object []byte) {
	if !rawjson.IsObject(object) {
		return
	}
	u, has := provider.UsageIn(object)
	if !has {
		return
	}
	t.hasUsage = true
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

// setFinish records the provider's word for the end of the answer, if the value is a string.
func (t *Tap) setFinish(word []byte) {
	if rawjson.IsString(word) {
		t.finish = string(rawjson.Unquote(word))
	}
}

// nullSplitter is a splitter that takes everything and finds nothing.
type nullSplitter struct{}

func (nullSplitter) Write([]byte, func(stream.Event) error) error { return nil }
func (nullSplitter) Close(func(stream.Event) error) error         { return nil }
func (nullSplitter) Buffered() int                                { return 0 }
