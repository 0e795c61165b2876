package anthropic

import (
	"bytes"
	"errors"

	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// StreamPath returns the path of messages: the body asks for the stream.
func (d Dialect) StreamPath(operation, model string) (string, bool) { return d.Path(operation, model) }

// StreamBody asks for a stream, which reports its usage without being asked.
func (Dialect) StreamBody(_ string, body []byte, _ bool) []byte { return stream.Ask(body, false) }

// Stream puts a message together.
func (Dialect) Stream(string) (stream.Splitter, stream.Assembler) {
	return new(stream.SSE), new(message)
}

// message puts a message together. Its blocks begin in order, one after the other, and may
// grow side by side.
type message struct {
	stream.Builder
	top    stream.Value // all members but content and usage
	usage  stream.Value
	blocks []*block
	fault  []byte // an error in place of the rest
	ended  bool
}

type block struct {
	value   stream.Value
	input   []byte // of a tool: JSON that comes in pieces
	stopped bool   // it has stopped
}

// maxBlocks is far more than an answer has.
const maxBlocks = 4096

// Errors of events that cannot follow those before them.
var (
	errTwoStarts = errors.New("the message starts twice")
	errNoStart   = errors.New("the message has not started")
	errOrder     = errors.New("a block is out of order")
	errInput     = errors.New("a tool's input is not JSON")
	errShape     = errors.New("an event has a part of another kind than is known")
)

// Add takes an event. It ignores pings and unknown events.
func (m *message) Add(e stream.Event) (last bool, err error) {
	event, err := stream.Object(e)
	if err != nil {
		return false, err
	}
	kind := string(rawjson.AppendText(nil, rawjson.Lookup(event, "type")))
	switch kind {
	case "error":
		m.fault = bytes.Clone(event)
		return true, nil
	case "message_start":
		m.startMessage(rawjson.Lookup(event, "message"))
		return false, m.Err()
	case "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop":
		if !m.top.IsSet() {
			return false, errNoStart
		}
	}
	switch kind {
	case "content_block_start":
		m.startBlock(event)
	case "content_block_delta":
		m.addDelta(event)
	case "content_block_stop":
		if b := m.openBlock(event); b != nil {
			b.stopped = true
			m.setInput(b)
		}
	case "message_delta":
		m.addEnd(event)
	case "message_stop":
		m.ended = true
		return true, m.Err()
	}
	return false, m.Err()
}

// startMessage takes the message as it begins. Content and usage only get their place among the members
// here: Body fills them in.
func (m *message) startMessage(object []byte) {
	switch {
	case m.top.IsSet():
		m.Fail(errTwoStarts)
		return
	case !rawjson.IsObject(object):
		m.Fail(errShape)
		return
	}
	for w := rawjson.WalkIn(object); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "content": // it comes in blocks
			m.Set(m.Member(&m.top, w.Name), []byte("[]"))
		case "usage":
			m.Set(m.Member(&m.top, w.Name), []byte("{}"))
			m.setUsage(value)
		default:
			m.Set(m.Member(&m.top, w.Name), value)
		}
	}
	m.Member(&m.top, []byte("content"))
}

// setUsage takes over the counts in a usage. Each count is that of the whole message so far.
func (m *message) setUsage(usage []byte) {
	if !rawjson.IsObject(usage) {
		return
	}
	for w := rawjson.WalkIn(usage); w.Next(); {
		m.Update(m.Member(&m.usage, w.Name), w.Skip())
	}
}

// startBlock begins a block. Its index must be the number of blocks so far, as blocks begin in
// order.
func (m *message) startBlock(event []byte) {
	object := rawjson.Lookup(event, "content_block")
	switch {
	case !rawjson.IsObject(object):
		m.Fail(errShape)
	case len(m.blocks) == maxBlocks, rawjson.Number(rawjson.Lookup(event, "index")) != float64(len(m.blocks)):
		m.Fail(errOrder)
	default:
		b := new(block)
		m.Open(&b.value, object)
		m.blocks = append(m.blocks, b)
	}
}

// openBlock returns the block that an event belongs to. It returns nil, and notes the fault, if there
// is no such block or it has stopped.
func (m *message) openBlock(event []byte) *block {
	index := rawjson.Number(rawjson.Lookup(event, "index"))
	if index < 0 || index >= float64(len(m.blocks)) || m.blocks[int(index)].stopped {
		m.Fail(errOrder)
		return nil
	}
	return m.blocks[int(index)]
}

// addDelta adds a delta to its block. A text grows the member of the same name.
func (m *message) addDelta(event []byte) {
	b, delta := m.openBlock(event), rawjson.Lookup(event, "delta")
	if b == nil {
		return
	}
	if !rawjson.IsObject(delta) {
		m.Fail(errShape)
		return
	}
	for w := rawjson.WalkIn(delta); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "type":
		case "partial_json":
			b.input = rawjson.AppendText(b.input, value)
			m.Kept(len(value))
		case "citation":
			m.Push(m.Member(&b.value, []byte("citations")), value)
		default:
			if member := m.Member(&b.value, w.Name); rawjson.IsString(value) {
				m.Append(member, value)
			} else {
				m.Update(member, value)
			}
		}
	}
}

// setInput sets the input of a tool in its block, once all pieces of it have come.
func (m *message) setInput(target *block) {
	if len(target.input) == 0 {
		return
	}
	if !rawjson.Valid(target.input) {
		m.Fail(errInput)
		return
	}
	m.Set(m.Member(&target.value, []byte("input")), rawjson.Trim(target.input))
	target.input = nil
}

// addEnd takes the members of the message that are known only at its end.
func (m *message) addEnd(event []byte) {
	for w := rawjson.WalkIn(event); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "type":
		case "usage":
			m.setUsage(value)
		case "delta":
			for in := rawjson.WalkIn(value); in.Next(); {
				m.Set(m.Member(&m.top, in.Name), in.Skip())
			}
		default:
			m.Set(m.Member(&m.top, w.Name), value)
		}
	}
}

// Body returns the message.
func (m *message) Body() ([]byte, error) {
	reason := m.top.Find("stop_reason") // each whole message has one
	switch {
	case m.fault != nil:
		return nil, &stream.Fault{Body: m.fault}
	case !m.ended, reason == nil, reason.IsNull():
		return nil, stream.ErrUnended
	}
	content := append(make([]byte, 0, m.Size()), '[')
	for i, b := range m.blocks {
		if !b.stopped {
			return nil, stream.ErrUnended
		}
		if i > 0 {
			content = append(content, ',')
		}
		content = b.value.AppendTo(content)
	}
	m.Replace(m.top.Find("content"), append(content, ']'))
	if usage := m.top.Find("usage"); usage != nil || m.usage.IsSet() {
		m.Replace(m.Member(&m.top, []byte("usage")), m.usage.AppendTo(nil))
	}
	return m.top.AppendTo(make([]byte, 0, m.Size())), m.Err()
}

// Usage returns the counts so far: at the start those of the input.
func (m *message) Usage() []byte {
	if !m.usage.IsSet() {
		return nil
	}
	return m.usage.AppendTo(nil)
}
