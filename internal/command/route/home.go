package route

import (
	"strings"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider/rawjson"
)

// beginningSize is the part of a prompt that decides its home, in bytes. Providers keep prompts in
// their caches from some thousand bytes on, and what comes later differs from line to line.
const beginningSize = 1024

// beginnings are the members of a body with which its prompt begins, in that order: those that stand
// before the messages, and the messages themselves, in each dialect.
var beginnings = []string{"system", "instructions", "systemInstruction", "system_instruction", "messages", "input", "contents", "prompt"}

// homeKey returns what lines of one home have in common; "": the line has no home.
func (t *Table) homeKey(it *promptfile.Item) string {
	r := t.names[it.Pool()]
	if r == nil {
		return ""
	}
	return r.HomeKey(&it.Request)
}

// HomeKey returns what a line of a sticky pool has in common with those of its home; "": it has no home.
func (r *Route) HomeKey(q *prompts.Request) string { return lineKey(r.Pool.By, q) }

// lineKey returns the key that decides a line's home: a field of its metadata, or the beginning of its
// prompt.
func lineKey(by string, q *prompts.Request) string {
	if field, isMetadata := strings.CutPrefix(by, settings.ByMetadata); isMetadata {
		value := rawjson.Lookup(q.Metadata, field)
		if rawjson.IsNull(value) {
			return ""
		}
		return string(value)
	}
	return beginning(q.Body)
}

// beginning returns the first bytes of a body's prompt, as they are in the body.
func beginning(body []byte) string {
	var text []byte
	for _, name := range beginnings {
		value := rawjson.Lookup(body, name)
		if text = append(text, value[:min(len(value), beginningSize-len(text))]...); len(text) == beginningSize {
			break
		}
	}
	return string(text)
}
