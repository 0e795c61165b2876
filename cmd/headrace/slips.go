package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/prompts"
)

// hintsFor say what flags may have to do with bad lines: a line each.
func hintsFor(input string, bad []*prompts.LineError) (hints []string) {
	if len(bad) > 0 && isNoJSONL(input, bad[0]) {
		hints = append(hints, formatHint(input))
	}
	if slices.ContainsFunc(bad, func(e *prompts.LineError) bool { return errors.Is(e, prompts.ErrNoModel) }) {
		hints = append(hints, "--model NAME gives lines a model that name none")
	}
	return hints
}

func formatHint(input string) string {
	return input + " is read as JSONL, an object a line: --format text takes each line as a prompt, --format csv each row as an item"
}

// isNoJSONL reports whether what was read as JSONL seems to be none: its first line is
// something else, and its name does not say that it is JSON.
func isNoJSONL(input string, first *prompts.LineError) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(input), ".gz"), ".zst")
	return first.Line == 1 && errors.Is(first, prompts.ErrNotJSON) &&
		!slices.Contains([]string{".jsonl", ".ndjson", ".json"}, filepath.Ext(name))
}

// mostSlips is how many letters a word may be off to be taken for another.
const mostSlips = 2

// nearest is the word that was most likely meant by what was typed; "" if none was.
func nearest(typed string, words []string) string {
	best, least := "", mostSlips+1
	for _, w := range words {
		if d := distance(typed, w); d < least && 2*d < len(w) {
			best, least = w, d
		}
	}
	return best
}

// didYouMean is a question for a word; "" for none.
func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return "did you mean " + word + "? "
}

// distance is how many letters must be put in, taken out, exchanged, or swapped with their
// neighbour to make one word of the other.
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
