package provider

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider/stream"
)

// The operations that a request may name as its Endpoint. OpenAI's are spelled as its
// paths, as prompt files do; a client makes the path that its provider has for one.
const (
	Chat        = "/v1/chat/completions"
	Completions = "/v1/completions"
	Embeddings  = "/v1/embeddings"
	Responses   = "/v1/responses"
	Moderations = "/v1/moderations"
	Rerank      = "/v1/rerank" // of Jina and Cohere, vLLM and others: OpenAI has none

	Messages        = "/v1/messages"     // of Anthropic, which some servers have beside OpenAI's
	GenerateContent = ":generateContent" // of Gemini
	Converse        = "/converse"        // of Bedrock

	EmbedContent       = ":embedContent"       // of Gemini: a vector
	BatchEmbedContents = ":batchEmbedContents" // of Gemini: several
	CohereEmbed        = "/v2/embed"           // of Cohere
	Invoke             = "/invoke"             // of Bedrock: embeddings, in the words of a model's maker
)

// Operations are all of them.
func Operations() []string {
	return []string{Chat, Completions, Embeddings, Responses, Moderations, Rerank, Messages, GenerateContent, Converse, EmbedContent, BatchEmbedContents, CohereEmbed, Invoke}
}

// OnlyReads reports whether a model answers an operation without writing: with vectors,
// verdicts or scores.
func OnlyReads(operation string) bool {
	switch operation {
	case Embeddings, Moderations, Rerank, EmbedContent, BatchEmbedContents, CohereEmbed, Invoke:
		return true
	}
	return false
}

// A Dialect is how a provider is spoken to: what is sent where, and how an answer is read.
// It is a value without state, keys or connections, and may be used by many goroutines. What
// differs between vendors of one dialect (addresses, keys, words) is theirs, not its.
type Dialect interface {
	// Name is a word for it in small letters, such as "anthropic".
	Name() string

	// Root is the path that a base URL without any gets, such as "/v1"; "" is none.
	Root() string

	// Path is where a call of an operation goes, below the base URL, and begins with "/". It
	// is false of an operation that the dialect does not have. A model that stands in the
	// path is escaped; one that stands in the body makes no difference.
	Path(operation, model string) (path string, ok bool)

	// Body is what is sent for a request in the dialect's own words: r.Body itself, unless
	// something must be said otherwise there than in a file. It never changes r.Body. An
	// error refuses what cannot be answered by one whole JSON value, such as a stream.
	Body(r Request) ([]byte, error)

	// Answer reads a response in one pass: a good answer with its usage and its end, or an
	// error as Classify has it. Words of the vendor are asked before those of the dialect.
	Answer(status int, h http.Header, body []byte, w *Wording) (Reply, *Error)

	// Text is what a good answer says in words: all of them, in order, without what the
	// model only thought. It is false where it says nothing so: vectors, calls of tools.
	Text(body []byte) (string, bool)
}

// A Translator is a Dialect into which chat requests of OpenAI's can be put. The first of
// its Operations is the one that they are put into.
type Translator interface {
	Dialect

	// FromChat puts a chat request into the dialect, with r.Model as its model. It is strict: of each
	// field of r.Body it says exactly the same or refuses the request, with an error that is
	// an *Untranslatable. Nothing is dropped but what says nothing (a field at its default),
	// and nothing is invented.
	FromChat(r Request, d Defaults) ([]byte, error)
}

// An Embedder is a Dialect into which requests for OpenAI's embeddings can be put.
type Embedder interface {
	Dialect

	// FromEmbeddings puts a request for embeddings into the dialect, with r.Model as its model and
	// as strictly as FromChat. It says of which of the dialect's operations the body is.
	FromEmbeddings(r Request) (operation string, body []byte, err error)
}

// A Streamer is a Dialect whose answers may come as streams of events. A stream is put together
// into the body that the plain endpoint would have sent, and Answer reads that.
type Streamer interface {
	Dialect

	// StreamPath is where a stream of an operation is asked for, as Path has it. It is false
	// of an operation that is answered in one piece only.
	StreamPath(operation, model string) (path string, ok bool)

	// StreamBody is a body that asks for a stream, of one that does not. With counts it also
	// asks for the usage at the end, where that must be asked for. It never changes body.
	StreamBody(operation string, body []byte, counts bool) []byte

	// Stream returns what puts one answer of an operation together.
	Stream(operation string) (stream.Splitter, stream.Assembler)
}

// Defaults are what a translated request says where the original does not.
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
	Lane    string // the lane that would take the request, where whoever asked names it
}

func (u *Untranslatable) Error() string {
	return fmt.Sprintf("provider: translate to %s: %s: %s", u.Dialect, u.Field, u.Why)
}

// Is makes errors.Is find the Kind: no other try would be translated.
func (u *Untranslatable) Is(target error) bool { return target == Invalid }

// Wording is what a vendor or a dialect means by words and statuses that others use
// otherwise, or not at all. The zero value has none of its own.
type Wording struct {
	// Kinds are of codes and types, in small letters.
	Kinds map[string]Kind
	// Phrases are of what stands in the prose, in small letters; the first that does decides,
	// and outweighs Kinds.
	Phrases []Phrase
	// Statuses are of what no word decides, nobody's.
	Statuses map[int]Kind
}

// Phrase is a piece of an error's prose and what it means.
type Phrase struct {
	Says string
	Kind Kind
}

// End says why an answer ended, in a word that holds for all dialects. "" is not known.
type End string

// The ends.
const (
	EndStop    End = "stop"    // the model was done, or met a word at which it was to stop
	EndLength  End = "length"  // at a bound on its length
	EndTool    End = "tool"    // it asks for a tool to be used
	EndRefused End = "refused" // the model or a filter declines
	EndOther   End = "other"
)

// EndOf says what a provider's own word for an end means.
func EndOf(finish string) End {
	if kind, known := FinishKind(finish); known {
		if kind == Truncated {
			return EndLength
		}
		return EndRefused
	}
	switch strings.ToLower(finish) {
	case "":
		return ""
	case "stop", "end_turn", "stop_sequence", "complete", "completed", "eos":
		return EndStop
	case "tool_calls", "tool_use", "function_call", "tool_call":
		return EndTool
	}
	return EndOther
}
