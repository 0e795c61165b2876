package export

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
)

// chat is the body of a chat's answer as OpenAI sends it.
const chat = `{"id":"chatcmpl-d06b9bd4cc588743","object":"chat.completion","created":1795811948,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":25,"total_tokens":44,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"system_fingerprint":"sim"}`

// lineOf is the line of an item with that body.
func lineOf(n int, body string) *journal.Line {
	cost := 0.000012
	l := journal.LineOf(fmt.Sprintf("item-%d", n), journal.Headrace{
		Line: n, Key: fmt.Sprintf("%016x%016x", uint64(n)*0x9E3779B97F4A7C15, n), Attempts: 1, Lane: "sim/all", Model: "gpt-4o", CostUSD: &cost,
		Usage: journal.Usage{InputTokens: 19, OutputTokens: 25}, QueuedMS: 1, LatencyMS: 188,
	})
	l.Response = &journal.Response{StatusCode: 200, RequestID: "req_sim0000000000000001", Body: []byte(body)}
	return &l
}

// output writes the lines of an output, and returns its name.
func output(tb testing.TB, lines ...*journal.Line) string {
	tb.Helper()
	var text []byte
	for _, l := range lines {
		text = journal.AppendLine(text, l)
	}
	path := filepath.Join(tb.TempDir(), "results.jsonl")
	must.Do(tb, os.WriteFile(path, text, 0o600))
	return path
}

// many is an output of n lines.
func many(tb testing.TB, n int) string {
	var list []*journal.Line
	for i := range n {
		list = append(list, lineOf(i+1, fmt.Sprintf(chat, `"Simulated answer. Upstream the snow is melting, and the level has begun to rise:\n\"faster\", they say."`)))
	}
	return output(tb, list...)
}

// An export's cost is measured against a bare read of the lines, which is what wc -l does.
func BenchmarkCSV(b *testing.B) {
	path := many(b, 20_000)
	size := must.Get(os.Stat(path))(b).Size()
	b.Run("export", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			must.Do(b, exportTo(io.Discard, path, &flags{}))
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			file := must.Get(os.Open(path))(b)
			in := bufio.NewReaderSize(file, bufferSize)
			n := 0
			for {
				text, err := in.ReadSlice('\n')
				if errors.Is(err, io.EOF) {
					break
				}
				n += bytes.Count(text, []byte{'\n'})
			}
			must.Do(b, file.Close())
		}
	})
}

// exportTo writes the table of an output.
func exportTo(out io.Writer, path string, f *flags) error {
	columns, err := f.complete(path)
	if err != nil {
		return err
	}
	t := &task{flags: f, output: path, columns: columns, form: formOf(f.format, f.spreadsheet)}
	return t.run(out)
}
