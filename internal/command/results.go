package command

import (
	"fmt"
	"strings"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// endpoints records the endpoints of a run's results. It belongs to the goroutine that takes
// the results.
type endpoints struct {
	first   string // "" before the first result
	several bool
}

func (e *endpoints) note(endpoint string) {
	if e.first == "" {
		e.first = endpoint
	}
	e.several = e.several || endpoint != e.first
}

// answerAt holds, for each endpoint, the jq path of the answer in a response body.
var answerAt = map[string]string{
	prompts.ChatCompletions: ".choices[0].message.content",
	prompts.Completions:     ".choices[0].text",
	prompts.Responses:       ".output[-1].content[0].text",
	prompts.Embeddings:      ".data[0].embedding",
	prompts.Moderations:     ".results[0].flagged",
	prompts.Rerank:          ".results",
	prompts.Messages:        ".content[0].text",
	prompts.GenerateContent: ".candidates[0].content.parts[0].text",
	prompts.Converse:        ".output.message.content[0].text",
	provider.EmbedContent:   " | .embedding // .embeddings",
}

// reading returns a command that shows the results in a file, an id and its answer a line.
// It shows the answer's own text field where lines have one, except for a model that only
// reads.
func (e *endpoints) reading(file string, text bool) string {
	if text && (e.several || !provider.OnlyReads(e.first)) {
		return "jq -c '[.custom_id, .headrace.text]' " + shellQuote(file)
	}
	at := ""
	if !e.several {
		at = answerAt[e.first]
	}
	body := ".response.body" + at
	if strings.Contains(at, "|") {
		body = "(" + body + ")"
	}
	return fmt.Sprintf("jq -c '[.custom_id, %s]' %s", body, shellQuote(file))
}
