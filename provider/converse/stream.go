package converse

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// StreamPath returns the path of another operation of the model.
func (d Dialect) StreamPath(operation, model string) (string, bool) {
	if operation != provider.Converse {
		return "", false
	}
	path, _ := d.Path(operation, model)
	return path + "-stream", true
}

// StreamBody returns the body itself: the path asks for the stream.
func (Dialect) StreamBody(_ string, body []byte, _ bool) []byte { return body }

// Stream puts a message together.
func (Dialect) Stream(string) (stream.Splitter, stream.Assembler) { return new(frames), new(message) }

// message puts a message together. It ends with its metadata, which come after its stop.
type message struct {
	stream.Builder
	top     stream.Value // all members but the message
	role    stream.Value
	blocks  []*contentBlock
	stopped bool
	ended   bool
	fault   []byte // an error in place of the rest
}

// contentBlock is a part of the content, of one of the kinds that come in pieces.
type contentBlock struct {
	index    float64
	stopped  bool
	tool     stream.Value // name and id
	input    []byte       // of the tool: JSON
	text     stream.Value
	thought  stream.Value // text and signature of reasoning
	redacted stream.Value
	cited    stream.Value // a list of citations
}

// maxBlocks is far more than an answer has.
const maxBlocks = 4096

// Errors of events that cannot follow those before them.
var (
	errTwoStarts = errors.New("the message starts twice")
	errNoStart   = errors.New("the message has not started")
	errOrder     = errors.New("an event is out of order")
	errInput     = errors.New("a tool's input is not JSON")
	errShape     = errors.New("a block has a part of another kind than is known")
)

// Add takes an event. It ignores unknown events.
func (m *message) Add(e stream.Event) (last bool, err error) {
	event, err := stream.Object(e)
	if err != nil {
		return false, err
	}
	if e.Fault {
		// The body that the plain operation has for an exception, with the exception's name added.
		var v stream.Value
		new(stream.Builder).Open(&v, event)
		m.fault = v.AppendWith(nil, "__type", rawjson.AppendString(nil, string(e.Name)))
		return true, nil
	}
	kind := string(e.Name)
	switch kind {
	case "messageStart":
		if m.role.IsSet() {
			return false, errTwoStarts
		}
	case "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop":
		if m.stopped {
			return false, errOrder
		}
		fallthrough
	case "metadata":
		if !m.role.IsSet() {
			return false, errNoStart
		}
	}
	switch kind {
	case "messageStart":
		role := rawjson.Lookup(event, "role")
		if !rawjson.IsString(role) {
			return false, errShape
		}
		m.Set(&m.role, role)
	case "contentBlockStart":
		m.startBlock(event)
	case "contentBlockDelta":
		m.addDelta(m.openBlock(event), rawjson.Lookup(event, "delta"))
	case "contentBlockStop":
		if b := m.openBlock(event); b != nil {
			b.stopped = true
		}
	case "messageStop":
		m.stopped = true
		m.takeMembers(event)
	case "metadata":
		if m.ended = m.stopped; !m.stopped {
			return false, errOrder
		}
		m.takeMembers(event)
	}
	return m.ended, m.Err()
}

// takeMembers takes members of the answer, except the noise that hides lengths.
func (m *message) takeMembers(event []byte) {
	for w := rawjson.WalkIn(event); w.Next(); {
		if value := w.Skip(); string(w.Name) != "p" {
			m.Update(m.Member(&m.top, w.Name), value)
		}
	}
}

// startBlock begins a block that says what it is. Its index must be above those of all blocks so
// far. A tool is the only kind that is known.
func (m *message) startBlock(event []byte) {
	last := len(m.blocks) - 1
	index := rawjson.Number(rawjson.Lookup(event, "contentBlockIndex"))
	if last >= 0 && index <= m.blocks[last].index {
		m.Fail(errOrder)
		return
	}
	b := m.openBlock(event)
	for w := rawjson.WalkIn(rawjson.Lookup(event, "start")); b != nil && w.Next(); {
		if value := w.Skip(); string(w.Name) == "toolUse" && rawjson.IsObject(value) {
			m.Open(&b.tool, value)
		} else {
			m.Fail(errShape)
		}
	}
}

// openBlock returns the block that an event belongs to: one that has not stopped, or a new one behind
// all others, as texts have no event for their start. On a fault it returns nil.
func (m *message) openBlock(event []byte) *contentBlock {
	index := rawjson.Number(rawjson.Lookup(event, "contentBlockIndex"))
	for i := len(m.blocks) - 1; i >= 0; i-- {
		if b := m.blocks[i]; b.index == index { //nolint:gocritic // identity: both are as the server wrote them
			if b.stopped {
				m.Fail(errOrder)
				return nil
			}
			return b
		} else if b.index < index {
			break
		}
	}
	if last := len(m.blocks) - 1; last >= 0 && index < m.blocks[last].index || len(m.blocks) == maxBlocks {
		m.Fail(errOrder)
		return nil
	}
	b := &contentBlock{index: index}
	m.blocks = append(m.blocks, b)
	return b
}

// addDelta adds a delta to its block. A delta of an unknown kind is a fault: without it the answer
// would lack a part. For a nil block the fault is noted already.
func (m *message) addDelta(b *contentBlock, delta []byte) {
	if b == nil {
		return
	}
	for w := rawjson.WalkIn(delta); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "text":
			m.Append(&b.text, value)
		case "toolUse":
			b.input = rawjson.AppendText(b.input, rawjson.Lookup(value, "input"))
			m.Kept(len(value))
		case "reasoningContent":
			m.addReasoning(b, value)
		case "citation":
			m.Push(&b.cited, value)
		default:
			m.Fail(errShape)
		}
	}
}

// addReasoning adds a delta of reasoning to a block.
func (m *message) addReasoning(b *contentBlock, delta []byte) {
	for w := rawjson.WalkIn(delta); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "text", "signature":
			m.Append(m.Member(&b.thought, w.Name), value)
		case "redactedContent":
			if b.redacted.IsSet() { // two texts in base 64 are not one
				m.Fail(errShape)
			}
			m.Set(&b.redacted, value)
		default:
			m.Fail(errShape)
		}
	}
}

// Body returns the answer.
func (m *message) Body() ([]byte, error) {
	switch {
	case m.fault != nil:
		return nil, &stream.Fault{Body: m.fault}
	case !m.ended:
		return nil, stream.ErrUnended
	}
	out := append(make([]byte, 0, m.Size()+512), `{"message":{"role":`...)
	out = append(m.role.AppendTo(out), `,"content":[`...)
	for i, b := range m.blocks {
		if i > 0 {
			out = append(out, ',')
		}
		if !rawjson.Valid(b.input) && len(b.input) > 0 {
			return nil, errInput
		}
		out = b.appendTo(out)
	}
	return m.top.AppendWith(make([]byte, 0, len(out)+512), "output", append(out, "]}}"...)), nil
}

// appendTo appends a block in the form of an answer. A text with citations is part of their block.
func (b *contentBlock) appendTo(out []byte) []byte {
	switch {
	case b.tool.IsSet():
		input := rawjson.Trim(b.input)
		if len(input) == 0 {
			input = []byte("{}")
		}
		out = append(out, `{"toolUse":`...)
		out = b.tool.AppendWith(out, "input", input)
	case b.thought.IsSet():
		out = append(out, `{"reasoningContent":{"reasoningText":`...)
		out = append(b.thought.AppendTo(out), '}')
	case b.redacted.IsSet():
		out = append(out, `{"reasoningContent":{"redactedContent":`...)
		out = append(b.redacted.AppendTo(out), '}')
	case b.cited.IsSet():
		out = append(out, `{"citationsContent":{"content":[`...)
		if b.text.IsSet() {
			out = append(b.text.AppendTo(append(out, `{"text":`...)), '}')
		}
		out = append(b.cited.AppendTo(append(out, `],"citations":`...)), '}')
	case b.text.IsSet():
		out = b.text.AppendTo(append(out, `{"text":`...))
	default: // it has begun and is empty
		out = append(out, `{"text":""`...)
	}
	return append(out, '}')
}

// Usage returns nil: only the last event has it.
func (m *message) Usage() []byte { return nil }

// frames splits a stream of type application/vnd.amazon.eventstream. A message is, with all
// numbers big-endian:
//
//	length │ length of headers │ CRC of both │ headers │ payload │ CRC of all before
//	  4              4               4                                    4
type frames struct{ buffered []byte }

// Lengths in bytes. AWS bounds a message to 16 MiB.
const (
	preludeSize = 8
	crcSize     = 4
	maxFrame    = 16 << 20
)

// Errors of bytes that are not a message.
var (
	errLength  = errors.New("a message of the event stream has an impossible length")
	errCRC     = errors.New("a checksum of the event stream is wrong")
	errHeaders = errors.New("the headers of a message of the event stream cannot be read")
)

// Write takes the next bytes. The length of a message is believed once its checksum is right.
func (f *frames) Write(p []byte, take func(stream.Event) error) error {
	f.buffered = append(f.buffered, p...)
	rest := f.buffered
	for {
		frame, err := firstFrame(rest)
		if err != nil {
			return err
		}
		if frame == nil {
			break
		}
		e, is, err := eventOf(frame)
		if err != nil {
			return err
		}
		if is {
			if err := take(e); err != nil {
				return err
			}
		}
		rest = rest[len(frame):]
	}
	if len(rest) < len(f.buffered) {
		f.buffered = f.buffered[:copy(f.buffered, rest)]
	}
	return nil
}

// firstFrame returns the first message in b, nil if not all of it has come. It checks both checksums.
func firstFrame(b []byte) ([]byte, error) {
	if len(b) < preludeSize+crcSize {
		return nil, nil
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	switch {
	case crc32.ChecksumIEEE(b[:preludeSize]) != binary.BigEndian.Uint32(b[preludeSize:]):
		return nil, errCRC
	case total > maxFrame || uint64(total) < preludeSize+crcSize+uint64(headers)+crcSize:
		return nil, errLength
	case len(b) < int(total):
		return nil, nil
	}
	body := b[:total-crcSize]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(b[total-crcSize:]) {
		return nil, errCRC
	}
	return b[:total], nil
}

// eventOf returns the event of a whole message: the one that a header names, or an error. A
// message of another kind is not an event.
func eventOf(frame []byte) (e stream.Event, is bool, err error) {
	start := uint32(preludeSize + crcSize)
	end := start + binary.BigEndian.Uint32(frame[4:])
	kind, name, message := "event", []byte(nil), []byte(nil)
	for headers := frame[start:end]; len(headers) > 0; {
		var key, value []byte
		if key, value, headers, err = readHeader(headers); err != nil {
			return e, false, err
		}
		switch string(key) {
		case ":message-type":
			kind = string(value)
		case ":event-type", ":exception-type", ":error-code":
			name = value
		case ":error-message":
			message = value
		}
	}
	e = stream.Event{Name: name, Data: frame[end : len(frame)-crcSize], Fault: kind != "event"}
	if kind == "error" {
		e.Data = append(rawjson.AppendString([]byte(`{"message":`), string(message)), '}')
	}
	return e, kind == "event" || kind == "exception" || kind == "error", nil
}

// readHeader reads the first header: its name, a byte for its type, and a value of that type.
func readHeader(b []byte) (name, value, rest []byte, err error) {
	nameSize := int(b[0])
	if len(b) < 1+nameSize+1 {
		return nil, nil, nil, errHeaders
	}
	name, kind, rest := b[1:1+nameSize], b[1+nameSize], b[2+nameSize:]
	var size int
	switch kind {
	case 0, 1: // true and false
	case 2:
		size = 1
	case 3:
		size = 2
	case 4:
		size = 4
	case 5, 8: // a long number, a time
		size = 8
	case 9: // a UUID
		size = 16
	case 6, 7: // bytes, a text
		if len(rest) < 2 {
			return nil, nil, nil, errHeaders
		}
		size, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
	default:
		return nil, nil, nil, errHeaders
	}
	if len(rest) < size {
		return nil, nil, nil, errHeaders
	}
	return name, rest[:size], rest[size:], nil
}

// Close has nothing to do: a part of a message is no message, so the answer lacks its end.
func (f *frames) Close(func(stream.Event) error) error { return nil }

// Buffered returns the number of bytes kept of a message that is not whole.
func (f *frames) Buffered() int { return len(f.buffered) }
