package prompts

import "github.com/headrace/headrace/batch/internal/keys"

// Key is what ties a result to the question: 32 hex digits made of the endpoint,
// the body in canonical form, and the id. The order of a body's keys and the
// white space in it do not count. Numbers and strings count as they are written:
// 1 and 1.0 differ, and so do "é" and "\u00e9", since to take two
// questions for one would lose an answer and the reverse only buys one again.
//
// The bodies of GenerateContent and Converse do not name the model: their keys have it before
// the endpoint, as a JSON string: `"gemini-3-flash":generateContent`.
//
// body must be valid JSON. A line without an id of its own is keyed by how many
// lines like it came before instead (its Request.Key says so), so that it keeps
// its key when lines above it come and go.
func Key(endpoint string, body []byte, id string) string {
	var of keys.Maker
	return of.Given(endpoint, body, []byte(id)).String()
}
