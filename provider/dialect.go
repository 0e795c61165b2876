package provider

import (
	"fmt"
	"net/http"

	"github.com/headrace/headrace/provider/stream"
)

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

// The operations that a request may name as its Endpoint. OpenAI's are spelled as its
// paths, as prompt files do. A client turns an operation into its provider's path.
const (
	Chat        = "/v1/chat/completions"
	Completions = "/v1/completions"
	Embeddings  = "/v1/embeddings"
	Responses   = "/v1/responses"
	Moderations = "/v1/moderations"
	Rerank      = "/v1/rerank" // of Jina and Cohere, vLLM and others: OpenAI has none

	Messages        = "/v1/messages"     // of Anthropic; some servers have it next to OpenAI's
	GenerateContent = ":generateContent" // of Gemini
	Converse        = "/converse"        // of Bedrock

	EmbedContent       = ":embedContent"       // of Gemini: a vector
	BatchEmbedContents = ":batchEmbedContents" // of Gemini: several
	CohereEmbed        = "/v2/embed"           // of Cohere
	Invoke             = "/invoke"             // of Bedrock: embeddings, in the words of a model's maker
)

// Operations returns all operations.
func Operations() []string {
	return []string{Chat, Completions, Embeddings, Responses, Moderations, Rerank, Messages, GenerateContent, Converse, EmbedContent, BatchEmbedContents, CohereEmbed, Invoke}
}

// OnlyReads reports whether a model's answer to an operation has no words: only vectors, verdicts
// or scores.
func OnlyReads(operation string) bool {
	switch operation {
	case Embeddings, Moderations, Rerank, EmbedContent, BatchEmbedContents, CohereEmbed, Invoke:
		return true
	}
	return false
}

// A Dialect is the language of a provider: where to send what, and how to read an answer.
// It is a value without state, keys or connections, and may be used by many goroutines. The
// differences between vendors of one dialect (addresses, keys, words) are not part of it.
type Dialect interface {
	// Name returns a word for the dialect in small letters, such as "anthropic".
	Name() string

	// Root returns the path given to a base URL that has none, such as "/v1"; "" is none.
	Root() string

	// Path returns the path of an operation below the base URL; it begins with "/". It returns
	// false if the dialect does not have the operation. A model that stands in the path is
	// escaped; one that stands in the body makes no difference.
	Path(operation, model string) (path string, ok bool)

	// Body returns the body to send for a request in the dialect's own words. That is r.Body
	// itself, unless something must be said otherwise there than in a file. It never changes
	// r.Body. It returns an error for a request whose answer is not one whole JSON value, such
	// as a stream.
	Body(r Request) ([]byte, error)

	// Answer reads a response in one pass. It returns a good answer with its usage and its end,
	// or an error as Classify does. The vendor's words count before those of the dialect.
	Answer(status int, h http.Header, body []byte, w *Wording) (Reply, *Error)

	// Text returns all the words of a good answer, in order, without what the model only
	// thought. It returns false if the answer has no words: vectors, calls of tools.
	Text(body []byte) (string, bool)
}

// A Translator is a Dialect into which OpenAI's chat requests can be translated. They become
// requests for the first of the [Operations] that it has.
type Translator interface {
	Dialect

	// FromChat translates a chat request into the dialect, with r.Model as its model. It is strict:
	// it says exactly the same as each field of r.Body, or refuses the request with an
	// *Untranslatable. It drops only what says nothing (a field at its default), and it invents
	// nothing.
	FromChat(r Request, d Defaults) ([]byte, error)
}

// An Embedder is a Dialect into which requests for OpenAI's embeddings can be translated.
type Embedder interface {
	Dialect

	// FromEmbeddings translates a request for embeddings into the dialect, with r.Model as its model
	// and as strictly as FromChat. It returns the dialect's operation for the body.
	FromEmbeddings(r Request) (operation string, body []byte, err error)
}

// A Streamer is a Dialect whose answers may come as streams of events. The client puts a stream
// together into the body that the plain endpoint would have sent, and Answer reads that.
type Streamer interface {
	Dialect

	// StreamPath returns the path that asks for a stream of an operation, like Path. It returns
	// false if the operation is answered in one piece only.
	StreamPath(operation, model string) (path string, ok bool)

	// StreamBody turns a body that asks for no stream into one that does. With counts the new body
	// also asks for the usage at the end, where that must be asked for. It never changes body.
	StreamBody(operation string, body []byte, counts bool) []byte

	// Stream returns the splitter and the assembler for one answer of an operation.
	Stream(operation string) (stream.Splitter, stream.Assembler)
}

// Defaults holds what a translated request says where the original does not.
type Defaults struct {
	// MaxTokens bounds the output in tokens where the dialect demands a bound; 0: there is
	// none, and a request without one is refused.
	MaxTokens int
}

// Untranslatable says which field of a request has no exact counterpart, and why.
type Untranslatable struct {
	Dialect string // its name
	Field   string // as a path, such as messages[2].content[0].type
	Why     string // half a sentence: "has no seed"; that a field is not there begins with "is missing"
	Lane    string // the lane that would take the request, if the caller names it
}

func (u *Untranslatable) Error() string {
	return fmt.Sprintf("provider: translate to %s: %s: %s", u.Dialect, u.Field, u.Why)
}

// Is makes errors.Is find the Kind: no other try would be translated.
func (u *Untranslatable) Is(target error) bool { return target == Invalid }
