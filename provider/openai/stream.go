package openai

import (
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

// errorIn finds the error in an event that takes the place of a part of an answer. It is in an
// object with an error in it, in one that is called an error, or in one in an event of that
// name. The plain endpoint makes an error of each of these bodies, too.
func errorIn(e stream.Event, object []byte) []byte {
	if told := rawjson.Lookup(object, "error"); isPresent(told) {
		return append(append([]byte(`{"error":`), told...), '}') // with choices it would be an answer
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
