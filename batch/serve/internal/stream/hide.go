package stream

import (
	"bytes"

	"github.com/headrace/headrace/provider/rawjson"
)

// Hider takes the usage out of a stream of a chat whose client has not asked for it: the chunk that has no choices. Clients
// that look at the first choice of each chunk would stumble over it. The zero Hider is ready.
type Hider struct {
	out          []byte
	line         []byte // the beginning of a line, held back until it is seen whether it is that chunk
	lineTooLong  bool   // the line is too long to be that chunk, and passes
	droppedChunk bool   // the chunk was the last line: the blank line after it goes, too
}

// Pass returns the bytes that the client may have. They are good until the next call.
func (h *Hider) Pass(p []byte) []byte {
	h.out = h.out[:0]
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		piece := p
		if end > 0 {
			piece = p[:end]
		}
		p = p[len(piece):]
		if h.lineTooLong = h.lineTooLong || len(h.line)+len(piece) > maxKept; h.lineTooLong {
			h.out, h.line = append(append(h.out, h.line...), piece...), h.line[:0]
		} else if h.line = append(h.line, piece...); end > 0 {
			h.endLine()
		}
		if end > 0 {
			h.lineTooLong = false
		}
	}
	return h.out
}

// Rest returns what is held back at the end of the stream.
func (h *Hider) Rest() []byte { return h.line }

// endLine passes on the line that has ended, or drops it: the chunk of the usage goes, and the blank line after it.
func (h *Hider) endLine() {
	text := bytes.TrimRight(h.line, "\r\n")
	switch data, is := bytes.CutPrefix(text, []byte("data:")); {
	case is && isUsageAlone(data):
		h.droppedChunk = true
	case h.droppedChunk && len(text) == 0:
		h.droppedChunk = false
	default:
		h.out, h.droppedChunk = append(h.out, h.line...), false
	}
	h.line = h.line[:0]
}

// isUsageAlone reports whether a chunk has a usage and no choice.
func isUsageAlone(data []byte) bool {
	if !bytes.Contains(data, []byte(`"usage"`)) {
		return false
	}
	object := rawjson.Trim(data)
	if !rawjson.IsObject(object) || !rawjson.Valid(object) || !rawjson.IsObject(rawjson.Lookup(object, "usage")) {
		return false
	}
	choices := rawjson.Trim(rawjson.Lookup(object, "choices"))
	return len(choices) > 1 && choices[0] == '[' && len(rawjson.Trim(choices[1:len(choices)-1])) == 0
}
