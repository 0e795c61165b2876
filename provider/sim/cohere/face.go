package cohere

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// Face is Cohere's, of rerank and embeddings. The zero value is ready.
type Face struct{}

// The operations, spelled as their paths.
const (
	rerank = "/v2/rerank"
	embed  = "/v2/embed"
	models = "/v1/models"
)

// Name returns the dialect's name.
func (Face) Name() string { return "cohere" }

// Base is empty: clients have the whole path.
func (Face) Base() string { return "" }

// Find knows Cohere's paths.
func (Face) Find(r *http.Request) face.Errand {
	switch path := r.URL.Path; path {
	case rerank, embed:
		return face.Errand{Aim: face.Ask, Operation: path}.ByMethod(r, http.MethodPost)
	case models:
		return face.Errand{Aim: face.List}.ByMethod(r, http.MethodGet)
	}
	return face.Errand{}
}

// Read reads a body as Cohere does.
func (Face) Read(r *http.Request, e face.Errand, body string) face.Request {
	req := &request{operation: e.Operation, key: face.Bearer(r.Header)}
	if e.Aim == face.Ask {
		req.read(body)
	}
	return req
}

// Models returns a page with all models.
func (Face) Models(names []string, _ face.Stamp) []byte {
	return append(face.Each([]byte(`{"models":[`), names, func(b []byte, _ int, name string) []byte {
		return fmt.Appendf(b, `{"name":%s,"endpoints":["rerank","embed"],"finetuned":false,"context_length":4096}`, face.Quote(name))
	}), `]}`...)
}

// Fault answers in Cohere's words.
func (Face) Fault(status int, r *http.Request, s face.Stamp) face.Reply {
	switch status {
	case http.StatusMethodNotAllowed:
		return refusal(status, "method not allowed", s)
	case http.StatusRequestEntityTooLarge:
		return refusal(status, "request body is too large", s)
	}
	return refusal(status, "the requested path '"+r.URL.Path+"' was not found", s)
}

// Mark does nothing: an error names its request in its body.
func (Face) Mark(http.Header, *http.Request, face.Stamp) {}

// request is a call as Cohere reads it.
type request struct {
	face.Prompt
	operation string
	key       string
	query     string // of a rerank, whose documents are Texts
	top       int
}

// maxTexts is the largest number of texts in one call of embeddings.
const maxTexts = 96

// purposes are the purposes for which texts may be embedded.
var purposes = []string{"search_document", "search_query", "classification", "clustering"}

// read reads a body; it returns for any body. It ignores unknown fields.
func (r *request) read(body string) {
	root := gjson.Parse(body)
	if !gjson.Valid(body) || !root.IsObject() {
		r.Complain("", "invalid request: unable to parse request body as JSON")
		return
	}
	if r.Model = root.Get("model").String(); r.Model == "" {
		r.Complain("model", "invalid request: model is required")
	}
	if r.operation == rerank {
		r.readRerank(root)
	} else {
		r.readEmbed(root)
	}
}

// readRerank reads a rerank. The query and all documents are charged; neither may be empty.
func (r *request) readRerank(root gjson.Result) {
	r.query = root.Get("query").String()
	r.Charge(r.query)
	r.top = int(min(max(root.Get("top_n").Num, 0), face.MaxBody))
	r.addTexts(root.Get("documents"))
	switch {
	case r.query == "":
		r.Complain("query", "invalid request: query must not be empty")
	case len(r.Texts) == 0:
		r.Complain("documents", "invalid request: list of documents must not be empty")
	}
}

// readEmbed reads a request for embeddings. It complains of a missing purpose and of too few or too
// many texts.
func (r *request) readEmbed(root gjson.Result) {
	r.addTexts(root.Get("texts"))
	switch {
	case !slices.Contains(purposes, root.Get("input_type").Str):
		r.Complain("input_type", "invalid request: valid input_type must be provided with the provided model")
	case len(r.Texts) == 0:
		r.Complain("texts", "invalid request: at least one of texts, images and inputs must be provided")
	case len(r.Texts) > maxTexts:
		r.Complain("texts", fmt.Sprintf("invalid request: total number of texts must be at most %d - received %d", maxTexts, len(r.Texts)))
	}
}

func (r *request) addTexts(list gjson.Result) {
	list.ForEach(func(_, text gjson.Result) bool {
		if text.Type != gjson.String {
			r.Complain("", "invalid type: parameter is of type object but should be of type string")
		}
		r.Add(text.String())
		return list.IsArray()
	})
}

// Call charges the tokens that are read.
func (r *request) Call() face.Call {
	return face.Call{
		Tokens: max(1, float64(r.Read())),
		Key:    r.key, Keyless: r.key == "", Model: r.Model, Invalid: r.Complaint != "",
	}
}

// Answer returns the body of each operation.
func (r *request) Answer(s face.Stamp) face.Reply {
	if r.operation == rerank {
		return face.JSON(http.StatusOK, r.ranked(s))
	}
	return face.JSON(http.StatusOK, r.embedded(s))
}

const version = `"meta":{"api_version":{"version":"2"},"billed_units":`

func (r *request) ranked(s face.Stamp) []byte {
	b := fmt.Appendf(make([]byte, 0, 512), `{"id":"%s","results":[`, s.ID)
	b = face.Each(b, face.Ranks(r.query, r.Texts, r.top), func(b []byte, _ int, rank face.Rank) []byte {
		return fmt.Appendf(b, `{"index":%d,"relevance_score":%g}`, rank.Index, rank.Score)
	})
	return append(b, `],`+version+`{"search_units":1}}}`...)
}

func (r *request) embedded(s face.Stamp) []byte {
	b := fmt.Appendf(make([]byte, 0, 1024), `{"id":"%s","embeddings":{"float":[`, s.ID)
	b = face.Each(b, r.Texts, func(b []byte, _ int, text string) []byte { return face.AppendVector(b, text) })
	b = face.Each(append(b, `]},"texts":[`...), r.Texts, func(b []byte, _ int, text string) []byte { return append(b, face.Quote(text)...) })
	return fmt.Appendf(b, `],`+version+`{"input_tokens":%d}},"response_type":"embeddings_by_type"}`, r.Read())
}

// Refuse returns a message. Cohere's spent balance is a trial key's month.
func (r *request) Refuse(v face.Verdict, s face.Stamp) face.Reply {
	const broken = "internal server error"
	switch v.Kind {
	case face.RateLimited, face.TooLarge:
		return refusal(http.StatusTooManyRequests, limitMessage(v), s)
	case face.InsufficientQuota:
		return refusal(http.StatusTooManyRequests, "You are using a Trial key, which is limited to 1000 API calls / month.", s)
	case face.Unauthorized:
		if r.key == "" {
			return refusal(http.StatusUnauthorized, "no api key supplied", s)
		}
		return refusal(http.StatusUnauthorized, "invalid api token", s)
	case face.ModelNotFound:
		return refusal(http.StatusNotFound, "model '"+r.Model+"' not found, make sure the correct model ID was used and that you have access to the model.", s)
	case face.BadRequest:
		return refusal(http.StatusBadRequest, cmp.Or(r.Complaint, "invalid request: the simulated provider was told to refuse it"), s)
	case face.Overloaded:
		return refusal(http.StatusServiceUnavailable, "service unavailable", s)
	case face.Malformed:
		return refusal(http.StatusOK, broken, s)
	}
	return refusal(http.StatusInternalServerError, broken, s)
}

// limitMessage returns a message with the figure of the limit, unless the server is terse.
func limitMessage(v face.Verdict) string {
	switch {
	case v.Terse:
		return "too many requests"
	case v.Dimension == face.Tokens:
		return fmt.Sprintf("Too many tokens: the limit is %s tokens / minute.", face.Whole(v.Tokens.Limit))
	}
	return fmt.Sprintf("You are using a Trial key, which is limited to %s API calls / minute.", face.Whole(v.Requests.Limit))
}

func refusal(status int, message string, s face.Stamp) face.Reply {
	return face.JSON(status, fmt.Appendf(nil, `{"id":"sim-%016x","message":%s}`, s.Serial, face.Quote(message)))
}

// Tell names the wait, if the verdict has one.
func (r *request) Tell(h http.Header, v face.Verdict, _ face.Stamp) { v.TellWait(h, v.RetryAfterMS) }
