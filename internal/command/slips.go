package command

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/wire"
)

// hintsFor says how flags may have caused bad lines: a line each.
func hintsFor(bad []*prompts.LineError) (hints []string) {
	if i := slices.IndexFunc(bad, isNoJSONL); i >= 0 {
		hints = append(hints, formatHint(printable.Line(bad[i].File)))
	}
	if slices.ContainsFunc(bad, lacksBound) {
		hints = append(hints, "--max-tokens N sets max_tokens for chats that have none")
	}
	if slices.ContainsFunc(bad, func(e *prompts.LineError) bool { return errors.Is(e, prompts.ErrUntranslatable) }) {
		hints = append(hints, "--on-untranslatable skip leaves out lines that cannot be translated")
	}
	if slices.ContainsFunc(bad, func(e *prompts.LineError) bool { return e.Endpoint == prompts.Rerank }) {
		hints = append(hints, "if query and documents are data, a template makes prompts of them, as in --template '{{.query}}'")
	}
	return append(hints, elsewhere(bad)...)
}

// lacksBound reports whether a chat cannot be translated because its answer has no bound.
func lacksBound(e *prompts.LineError) bool {
	return errors.Is(e, prompts.ErrUntranslatable) && e.Field == "max_completion_tokens" && strings.Contains(e.Reason, "is missing")
}

// mostSpeakers is the largest number of providers that a hint names: most providers take
// chats.
const mostSpeakers = 6

// elsewhere names, for each endpoint that the provider does not have, the vendors whose
// dialect has it.
func elsewhere(bad []*prompts.LineError) (hints []string) {
	said := map[string]bool{}
	for _, e := range bad {
		whom := speakersOf(e.Endpoint)
		if said[e.Endpoint] || len(whom) == 0 || len(whom) > mostSpeakers {
			continue
		}
		said[e.Endpoint] = true
		hints = append(hints, "--provider "+strings.Join(whom, " or ")+" takes lines for "+e.Endpoint)
	}
	return hints
}

// speakersOf lists the vendors whose dialect has an endpoint as its first.
func speakersOf(endpoint string) (names []string) {
	for _, v := range catalog.Rows() {
		if wire.Served(v.Dialect)[0] == endpoint {
			names = append(names, v.Name)
		}
	}
	return names
}

func formatHint(input string) string {
	return input + " is read as JSONL, one object a line: --format text reads each line as a prompt, --format csv each row as an item"
}

// isNoJSONL reports whether a file read as JSONL seems to be something else: its first line
// is, and its name does not say that it is JSON.
func isNoJSONL(first *prompts.LineError) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(first.File), ".gz"), ".zst")
	return first.FileLine() == 1 && errors.Is(first, prompts.ErrNotJSON) &&
		!slices.Contains([]string{".jsonl", ".ndjson", ".json"}, filepath.Ext(name))
}

// mostSlips is the largest number of wrong letters in a word that passes for another.
const mostSlips = 2

// nearest returns the word that the user most likely meant; "" if there is none.
func nearest(typed string, words []string) string {
	best, least := "", mostSlips+1
	for _, w := range words {
		if d := distance(typed, w); d < least && 2*d < len(w) {
			best, least = w, d
		}
	}
	return best
}

// didYouMean asks whether the user meant a word; "" for none.
func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return "did you mean " + word + "? "
}

// distance returns the number of letters to insert, remove, replace, or swap with their
// neighbour to turn one word into the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			switch {
			case i == 0:
				rows[0][j] = j
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
