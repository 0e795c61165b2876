package parts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// text is a line as a worker writes it into its journal: of a result, or, with a code, of a failure.
func text(line int, code, body string) []byte {
	key := prompts.Key("/v1/x", []byte(`{}`), fmt.Sprint(line))
	cost := float64(line) / 8
	l := journal.LineOf(prompts.LineID(line), journal.Headrace{
		Line: line, Key: key, Attempts: 2, Usage: journal.Usage{InputTokens: 3, OutputTokens: int64(line)}, CostUSD: &cost,
	})
	quoted, _ := json.Marshal(body)
	l.Response = &journal.Response{StatusCode: 200, Body: quoted}
	if code != "" {
		l.Response, l.Error = nil, &journal.Failure{Code: code, Message: body}
	}
	if code == promptfile.CodeInvalidLine {
		l.Headrace.CostUSD, l.Headrace.Attempts, l.Headrace.Usage = nil, 0, journal.Usage{}
	}
	return journal.AppendLine(nil, &l)
}

// journalOf gives lines as a store reads them from a journal, each in the same memory.
func journalOf(lines ...[]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var room []byte
		for _, l := range lines {
			room = append(room[:0], bytes.TrimSuffix(l, []byte("\n"))...)
			if !yield(room, nil) {
				return
			}
			for i := range room {
				room[i] = 'x'
			}
		}
	}
}

func chunkOf(n, round int) *job.Chunk { return &job.Chunk{Job: "j", Number: n, Round: round} }

// write makes a part of lines.
func write(t testing.TB, s store.Store, n, round int, lines ...[]byte) Sums {
	t.Helper()
	j, err := Join(0, journalOf(lines...))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := Write(t.Context(), s, chunkOf(n, round), len(lines), j)
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// some are lines of a chunk that has lines from one on; every third has failed, every fifth is bad.
func some(first, n int) (lines [][]byte) {
	for i := first; i < first+n; i++ {
		switch {
		case i%5 == 0:
			lines = append(lines, text(i, promptfile.CodeInvalidLine, "bad"))
		case i%3 == 0:
			lines = append(lines, text(i, "timeout", "slow"))
		default:
			lines = append(lines, text(i, "", strings.Repeat("é", i%7)))
		}
	}
	return lines
}

func shuffled(rng *rand.Rand, lines [][]byte) [][]byte {
	lines = slices.Clone(lines)
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

func all(t testing.TB, lines iter.Seq2[[]byte, error]) string {
	t.Helper()
	var out bytes.Buffer
	for l, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		out.Write(l)
	}
	return out.String()
}

func joined(lines [][]byte) string { return string(bytes.Join(lines, nil)) }
