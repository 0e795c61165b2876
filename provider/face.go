package provider

import "net/http"

// A Face is a Dialect that also knows the other side: how a server of it looks to its clients. It
// is for programs that stand between clients and a provider.
type Face interface {
	Dialect

	// Paths lists the paths of its operations as people write them, such as "/v1/messages". M stands
	// for a model.
	Paths() []string

	// Find reads the escaped path of a request. It returns what the request asks, of which model,
	// and whether the path asks for a stream. The model is "" if it stands in the body, and so may
	// the wish for a stream. It returns false for a path that is not the dialect's.
	Find(path string) (operation, model string, streams, ok bool)

	// Refuse returns the error of a request in the dialect's own form, with its headers.
	Refuse(r Refusal) (http.Header, []byte)

	// Fault returns the event that ends a stream with an error.
	Fault(operation string, r Refusal) []byte

	// Ping returns bytes that may stand between two events, and that clients pass over; nil: there are
	// none. The text is for people and may be left out.
	Ping(text string) []byte
}

// Refusal is an error that a server gives its client.
type Refusal struct {
	Status  int
	Code    string // a word for programs
	Message string // for people: one line
}
