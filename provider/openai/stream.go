package openai

import (
	"bytes"
	"errors"
	"slices"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// StreamPath returns the operation's path: the body asks for the stream.
func (d Dialect) StreamPath(operation, model string) (string, bool) {
	switch path, has := d.Path(operation, model); path {
	case "/chat/completions", "/completions", "/responses", "/messages":
		return path, has
	}
	return "", false
}

// StreamBody asks for a stream. Chat completions and completions report their usage only if they
// are asked to.
func (d Dialect) StreamBody(operation string, body []byte, counts bool) []byte {
	path, _ := d.Path(operation, "")
	return stream.Ask(body, counts && (path == "/chat/completions" || path == "/completions"))
}

// Stream puts an answer of the operation together.
func (d Dialect) Stream(operation string) (stream.Splitter, stream.Assembler) {
	switch path, _ := d.Path(operation, ""); path {
	case "/messages":
		return anthropic.Dialect{}.Stream(provider.Messages)
	case "/responses":
		return new(stream.SSE), new(response)
	}
	return new(stream.SSE), new(completion)
}

// errorIn returns the body of an error that comes in place of a part of an answer, nil if e is none.
// An error is an object with a member error, one that is called an error, or one in an event of that
// name. Without a stream, each of these bodies is an error, too.
func errorIn(e stream.Event, object []byte) []byte {
	if fault := rawjson.Lookup(object, "error"); isPresent(fault) {
		return append(append([]byte(`{"error":`), fault...), '}') // with choices it would be an answer
	}
	if string(e.Name) == "error" || rawjson.IsWord(rawjson.Lookup(object, "object"), "error") || rawjson.IsWord(rawjson.Lookup(object, "type"), "error") {
		return append([]byte(nil), object...)
	}
	return nil
}

func isPresent(value []byte) bool { return !rawjson.IsNull(value) && string(value) != "{}" }

// response keeps the last event of a stream of Responses, which has the whole answer in it.
type response struct{ body, fault []byte }

// Add passes over events that report progress.
func (r *response) Add(e stream.Event) (last bool, err error) {
	if string(e.Data) == done { // the mark of other streams, which some servers send
		return false, nil
	}
	object, err := stream.Object(e)
	if err != nil {
		return false, err
	}
	kind := rawjson.Lookup(object, "type")
	for _, ending := range [...]string{"response.completed", "response.incomplete", "response.failed"} {
		if whole := rawjson.Lookup(object, "response"); rawjson.IsWord(kind, ending) && rawjson.IsObject(whole) {
			r.body = append(r.body, whole...)
			return true, nil
		}
	}
	if !rawjson.IsString(kind) || rawjson.IsWord(kind, "error") {
		r.fault = errorIn(e, object)
	}
	return r.fault != nil, nil
}

// Body returns the response.
func (r *response) Body() ([]byte, error) {
	switch {
	case r.fault != nil:
		return nil, &stream.Fault{Body: r.fault}
	case r.body == nil:
		return nil, stream.ErrUnended
	}
	return r.body, nil
}

// Usage returns nil: only the last event has it.
func (r *response) Usage() []byte { return nil }

// Size returns the length of the body.
func (r *response) Size() int { return len(r.body) }

// done is the mark at the end of a stream of chunks.
const done = "[DONE]"

// completion puts together the chunks of a chat completion, or of a completion.
type completion struct {
	stream.Builder
	top     stream.Value // all members but the choices
	choices []*choice
	fault   []byte // an error in place of an answer
	ended   bool
}

type choice struct {
	index   float64
	rest    stream.Value // all members but the message
	message stream.Value // of a completion, not there
}

// maxChoices is more than any server lets a request ask for.
const maxChoices = 1024

// Errors of choices that cannot be.
var (
	errAfterEnd = errors.New("a choice goes on after its end")
	errNoEnd    = errors.New("a choice has no end")
	errChoices  = errors.New("there are too many choices")
	errShape    = errors.New("a chunk has a part of another kind than is known")
)

// Add adds a chunk, or keeps the error that comes in place of one.
func (c *completion) Add(e stream.Event) (last bool, err error) {
	if string(rawjson.Trim(e.Data)) == done {
		c.ended = true
		return true, nil
	}
	object, err := stream.Object(e)
	if err != nil {
		return false, err
	}
	if c.fault = errorIn(e, object); c.fault != nil {
		return true, nil
	}
	for w := rawjson.WalkIn(object); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "choices":
			for in := rawjson.WalkIn(value); in.Next(); {
				c.addChoice(in.Skip())
			}
		case "obfuscation": // noise that hides lengths
		case "object":
			c.setObject(value)
		default:
			c.Update(c.Member(&c.top, w.Name), value)
		}
	}
	return false, c.Err()
}

// setObject sets the member "object" once, to the value that an answer without a stream has.
func (c *completion) setObject(object []byte) {
	member := c.Member(&c.top, []byte("object"))
	if member.IsSet() {
		return
	}
	if head, is := bytes.CutSuffix(object, []byte(`.chunk"`)); is {
		object = append(bytes.Clone(head), '"')
	}
	c.Set(member, object)
}

// addChoice adds a choice's part of a chunk. A choice that has ended may still appear, but must not
// add words.
func (c *completion) addChoice(part []byte) {
	if !rawjson.IsObject(part) {
		c.Fail(errShape)
		return
	}
	target := c.choiceAt(rawjson.Number(rawjson.Lookup(part, "index")))
	if target == nil {
		return
	}
	ended := target.hasEnd()
	for w := rawjson.WalkIn(part); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "delta":
			if ended && addsContent(value) {
				c.Fail(errAfterEnd)
			}
			c.addDelta(target, value)
		case "text":
			if ended && isPresent(value) && string(value) != `""` {
				c.Fail(errAfterEnd)
			}
			c.Append(c.Member(&target.rest, w.Name), value)
		case "logprobs":
			c.Merge(c.Member(&target.rest, w.Name), value, isWhole)
		default:
			c.Update(c.Member(&target.rest, w.Name), value)
		}
	}
}

// addsContent reports whether a delta adds anything but a role.
func addsContent(delta []byte) bool {
	for w := rawjson.WalkIn(delta); w.Next(); {
		value := w.Skip()
		if string(w.Name) != "role" && isPresent(value) && string(value) != `""` && string(value) != "[]" {
			return true
		}
	}
	return false
}

// choiceAt returns the choice with that index, a new one if there is none. It returns nil, and notes
// the fault, if there are too many.
func (c *completion) choiceAt(index float64) *choice {
	for i := len(c.choices) - 1; i >= 0; i-- {
		if c.choices[i].index == index { //nolint:gocritic // identity: both are as the server wrote them
			return c.choices[i]
		}
	}
	if len(c.choices) == maxChoices {
		c.Fail(errChoices)
		return nil
	}
	added := &choice{index: index}
	c.choices = append(c.choices, added)
	return added
}

func (c *choice) hasEnd() bool {
	end := c.rest.Find("finish_reason")
	return end != nil && !end.IsNull() && string(end.AppendTo(nil)) != `""` // some servers say so until the end
}

// addDelta adds a delta to a choice's message.
func (c *completion) addDelta(target *choice, delta []byte) {
	if !rawjson.IsObject(delta) {
		if !rawjson.IsNull(delta) {
			c.Fail(errShape)
		}
		return
	}
	for w := rawjson.WalkIn(delta); w.Next(); {
		value, member := w.Skip(), c.Member(&target.message, w.Name)
		switch {
		case string(w.Name) == "tool_calls" && !rawjson.IsNull(value):
			for in := rawjson.WalkIn(value); in.Next(); {
				c.addCall(member, in.Skip())
			}
		case isWhole(w.Name):
			c.Update(member, value)
		default:
			c.Merge(member, value, isWhole)
		}
	}
}

// addCall adds a part to the call of a tool. The index in a part names the call, and is not a member
// of it. Some servers give all calls the same index, or none.
func (c *completion) addCall(calls *stream.Value, part []byte) {
	index := rawjson.Number(rawjson.Lookup(part, "index"))
	call := c.Element(calls, index)
	if isAnotherCall(call, part) {
		call = c.Insert(calls, index)
	}
	for w := rawjson.WalkIn(part); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "index":
		case "id", "type":
			c.Update(c.Member(call, w.Name), value)
		default:
			c.Merge(c.Member(call, w.Name), value, isWhole)
		}
	}
}

// isAnotherCall reports whether a part begins a call of its own: its id is new, and it has a name.
// Some servers give each part of one call a new id, but only the first a name.
func isAnotherCall(call *stream.Value, part []byte) bool {
	id, name := rawjson.Lookup(part, "id"), rawjson.Lookup(rawjson.Lookup(part, "function"), "name")
	known, function := call.Find("id"), call.Find("function")
	return known != nil && !known.IsNull() && function != nil && function.Find("name") != nil &&
		len(id) > len(`""`) && len(name) > len(`""`) && rawjson.IsString(id) && rawjson.IsString(name) &&
		string(known.AppendTo(nil)) != string(id)
}

// isWhole reports whether a member of a message, at any depth, comes whole and not in pieces.
func isWhole(name []byte) bool {
	switch string(name) {
	case "role", "id", "type", "name", "index", "format", "signature", "expires_at":
		return true
	}
	return false
}

// Body returns the completion, with its choices in order.
func (c *completion) Body() ([]byte, error) {
	switch {
	case c.fault != nil:
		return nil, &stream.Fault{Body: c.fault}
	case !c.ended:
		return nil, stream.ErrUnended
	}
	slices.SortStableFunc(c.choices, func(a, b *choice) int { return int(a.index - b.index) })
	list := make([]byte, 0, c.Size()+c.Size()/8)
	for i, one := range c.choices {
		if !one.hasEnd() {
			return nil, errNoEnd
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = one.appendTo(list)
	}
	return c.top.AppendWith(make([]byte, 0, cap(list)+512), "choices", append(append([]byte{'['}, list...), ']')), nil
}

func (c *choice) appendTo(dst []byte) []byte {
	if !c.message.IsSet() {
		return c.rest.AppendTo(dst)
	}
	message := c.message.AppendTo(nil)
	if c.message.Find("role") == nil {
		message = append([]byte(`{"role":"assistant",`), message[1:]...)
	}
	return c.rest.AppendWith(dst, "message", message)
}

// Usage returns the latest usage.
func (c *completion) Usage() []byte {
	if usage := c.top.Find("usage"); usage != nil && !usage.IsNull() {
		return usage.AppendTo(nil)
	}
	return nil
}
