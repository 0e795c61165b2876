package provider

// Request is one call as a prompt file has it: already JSON, to be sent byte
// for byte.
//
// A client has one method for it:
//
//	Do(ctx context.Context, r Request) (Reply, error)
//
// and keeps these promises, which provider/providertest checks: it tries once and never again
// on its own. There are two exceptions, in which nothing was done for the request. It replaces
// a refused key that has expired meanwhile by a fresher one. It leaves out an option for a
// stream's usage that the server does not know. Every error is an *Error. It reports headers,
// usage and finish reason to the Recorder in ctx. It reads a bounded number of bytes, and
// follows no redirect to another host. The key is in no error.
type Request struct {
	// Endpoint is an operation, such as Chat. It can never name a host.
	Endpoint string
	// Model is the model that is asked, for clients that put it in the URL.
	Model string
	// Body is the request's JSON, in the words of the operation's dialect. The client does not
	// change it; it sends that, or a translation of it.
	Body []byte
	// MaxTokens bounds the output, in tokens, of a request that says no bound itself and is
	// translated into a dialect that demands one. 0: there is none.
	MaxTokens int
	// Lane names the lane that let the call in, for callers with a client for each lane; see
	// batch.LaneFrom.
	Lane string
}

// Reply is the provider's answer. If Do fails after an answer came, Status,
// RequestID and Body (at most MaxErrorBody bytes of it) are set all the same, and so is what
// the answer said of its usage.
type Reply struct {
	Status    int
	RequestID string
	// Body is the answer exactly as it came.
	Body []byte
	// Done gives back the room that a long Body takes in its client, once nobody holds it
	// any more, for clients that keep it until then. nil: there is none to give back. Done may
	// be called more than once, by one goroutine at a time.
	Done func()
	// Usage means something only if HasUsage: some servers report none.
	Usage Usage
	// Finish is the provider's own word for why the answer ended, "" if it
	// said nothing; see FinishKind and EndOf. An answer without any content has
	// "no_content", see ReplyOf.
	Finish string
	// Text is the answer in words, if HasText: a client reads it if it is configured to.
	Text string
	// Dialect names the dialect of Body; Translated says that the request was translated into it.
	Dialect string
	// Served is the model that was asked, "" if it is the request's own.
	Served string

	HasUsage, HasText, Translated bool // side by side: an answer is kept for each item
}
