package stream

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/headrace/headrace/provider/rawjson"
)

// An Event is one part of a stream. Its slices are good until the next one.
type Event struct {
	Name  []byte // nil: it has none
	Data  []byte
	Fault bool // the framing says that it is an error
}

// A Splitter cuts bytes into events.
type Splitter interface {
	// Write takes the next bytes and passes the events that end in them to take, one after another,
	// until take fails or the stream cannot be read.
	Write(p []byte, take func(Event) error) error
	// Close takes the end of the bytes.
	Close(take func(Event) error) error
	// Buffered returns the number of bytes kept of an event that has not ended.
	Buffered() int
}

// An Assembler puts the events of one answer together.
type Assembler interface {
	// Add takes the next event, and reports whether it is the last. An error says why the
	// event cannot follow those before it.
	Add(e Event) (last bool, err error)
	// Body returns the answer as the plain endpoint would have sent it. An error is a *Fault
	// from an event, or says what is missing.
	Body() ([]byte, error)
	// Usage returns the object that counts the tokens so far; nil: there is none.
	Usage() []byte
	// Size returns a lower bound of the bytes that are kept.
	Size() int
}

// Errors of events that belong to no answer.
var (
	errNotObject = errors.New("an event is not a JSON object")
	errNotUTF8   = errors.New("an event is not UTF-8")
	ErrUnended   = errors.New("the stream ended before the answer was whole")
)

// A Fault is an error in an event that takes the place of the rest of an answer.
type Fault struct {
	Body []byte // as the plain endpoint would have sent it
}

// Error says that there is one. The dialect knows what the provider's error means.
func (*Fault) Error() string { return "an event told an error" }

// Object returns the JSON object of an event.
func Object(e Event) ([]byte, error) {
	data := rawjson.Trim(e.Data)
	switch {
	case !utf8.Valid(data):
		return nil, errNotUTF8
	case !rawjson.IsObject(data) || !rawjson.Valid(data):
		return nil, errNotObject
	}
	return data, nil
}

// counted asks for usage at the end of a stream.
const (
	optionsName = "stream_options"
	countName   = "include_usage"
)

// Ask turns a request's body, an object that asks for no stream, into one that does. With counts
// it also asks for the usage at the end, as OpenAI's chats must. A body that is no object stays
// as it is. It never changes body.
func Ask(body []byte, counts bool) []byte {
	object := rawjson.Trim(body)
	if !rawjson.IsObject(object) {
		return body
	}
	out := append(make([]byte, 0, len(object)+64), `{"stream":true`...)
	for _, m := range rawjson.Members(object, nil) {
		switch name := string(m.Name); {
		case name == "stream":
		case name == optionsName && counts:
			out = appendOptions(append(out, ','), m.Value)
			counts = false
		default:
			out = append(append(out, ','), m.Raw...)
		}
	}
	if counts {
		out = appendOptions(append(out, ','), nil)
	}
	return append(out, '}')
}

// WholeOnly refuses a body with true for one of the fields, such as a request for a stream: an answer
// that ends early would look like a shorter one. Most bodies have no true in them, and are not
// walked through.
func WholeOnly(body []byte, fields ...string) error {
	if !bytes.Contains(body, []byte("true")) {
		return nil
	}
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		if value := w.Skip(); string(value) == "true" && slices.Contains(fields, string(w.Name)) {
			return fmt.Errorf("%q:true is not supported: a result is one JSON value, and whole; leave it out", w.Name)
		}
	}
	return nil
}

// appendOptions appends a stream's options, with those that the body already has.
func appendOptions(out, options []byte) []byte {
	out = append(out, `"`+optionsName+`":{"`+countName+`":true`...)
	for w := rawjson.WalkIn(options); w.Next(); {
		if name, value := w.Name, w.Skip(); rawjson.IsObject(options) && string(name) != countName {
			out = append(append(rawjson.AppendString(append(out, ','), string(name)), ':'), value...)
		}
	}
	return append(out, '}')
}

// SSE splits server-sent events by the HTML standard. Its zero value is ready.
type SSE struct {
	line      []byte // the beginning of a line that has not ended
	name      []byte
	data      []byte
	hasData   bool // the event has data, which may be empty
	sawReturn bool // the last line ended with a carriage return: a line feed belongs to it
	started   bool // the first line was read: from here on a byte order mark is text
}

// Write takes the next bytes.
func (s *SSE) Write(p []byte, take func(Event) error) error {
	for len(p) > 0 {
		if s.sawReturn {
			if s.sawReturn = false; p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := lineEnd(p)
		if end < 0 {
			s.line = append(s.line, p...)
			return nil
		}
		line := p[:end]
		s.sawReturn = p[end] == '\r'
		p = p[end+1:]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line, s.line = s.line, s.line[:0]
		}
		if err := s.readLine(line, take); err != nil {
			return err
		}
	}
	return nil
}

// lineEnd returns the index at which the first line ends, -1 if it does not.
func lineEnd(p []byte) int {
	feed := bytes.IndexByte(p, '\n')
	line := p
	if feed >= 0 {
		line = p[:feed]
	}
	if carriage := bytes.IndexByte(line, '\r'); carriage >= 0 {
		return carriage
	}
	return feed
}

// Close takes the last line and the last event, which some servers do not end.
func (s *SSE) Close(take func(Event) error) error {
	line := s.line
	s.line = nil
	if err := s.readLine(line, take); err != nil || len(line) == 0 {
		return err
	}
	return s.dispatch(take)
}

// Buffered counts the line and the data.
func (s *SSE) Buffered() int { return len(s.line) + len(s.data) + len(s.name) }

var (
	byteOrder = []byte("\xef\xbb\xbf")
	dataField = []byte("data")
	nameField = []byte("event")
)

// readLine takes one line of an event. An empty line ends the event. Comments and unknown fields are
// ignored.
func (s *SSE) readLine(line []byte, take func(Event) error) error {
	if !s.started {
		s.started = true
		line = bytes.TrimPrefix(line, byteOrder)
	}
	if len(line) == 0 {
		return s.dispatch(take)
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch {
	case bytes.Equal(field, dataField):
		if s.hasData {
			s.data = append(s.data, '\n')
		}
		s.data, s.hasData = append(s.data, value...), true
	case bytes.Equal(field, nameField):
		s.name = append(s.name[:0], value...)
	}
	return nil
}

func (s *SSE) dispatch(take func(Event) error) (err error) {
	if s.hasData {
		err = take(Event{Name: s.name, Data: s.data})
	}
	s.name, s.data, s.hasData = s.name[:0], s.data[:0], false
	return err
}
