package sim

import "github.com/headrace/headrace/provider/sim/face"

// endpoint is one of OpenAI's paths that call a model.
type endpoint string

const (
	chatCompletions endpoint = "/v1/chat/completions"
	completions     endpoint = "/v1/completions"
	embeddings      endpoint = "/v1/embeddings"
	responses       endpoint = "/v1/responses"

	invalidRequest = "invalid_request_error"
	maxInputs      = 2048 // of an array of texts
	dimensions     = face.Dimensions
)

func quote(s string) []byte { return face.Quote(s) }

func tokensOf(chars int) int { return face.TokensOf(chars) }
