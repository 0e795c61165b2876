package prompts

import "github.com/headrace/headrace/batch/internal/keys"

// Key returns the key that ties a result to its question: 32 hex digits made of the
// endpoint, the body in canonical form, and the id. The order of a body's keys and the
// white space in it do not count. Numbers and strings count as they are written: 1 and 1.0
// differ, and so do "é" and "\u00e9". To take two questions for one would lose an answer,
// and the reverse only buys one again.
//
// The bodies of GenerateContent and Converse do not name the model: their keys have it before
// the endpoint, as a JSON string: `"gemini-3-flash":generateContent`.
//
// body must be valid JSON. For a line without an id of its own, the number of lines like it
// before it replaces the id (see its Request.Key). So it keeps its key when lines above it
// come and go.
func Key(endpoint string, body []byte, id string) string {
	var of keys.Maker
	return of.Given(endpoint, body, []byte(id)).String()
}
