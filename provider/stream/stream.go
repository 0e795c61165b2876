package stream

import (
	"errors"
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
	// Held returns the number of bytes kept of an event that has not ended.
	Held() int
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
