package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
)

// breaking is a server that cuts the first answer to some prompts off: behind their usage, before it,
// or without a word. A prompt that says never has none but such answers, until it is mended.
type breaking struct {
	*httptest.Server

	mu     sync.Mutex
	asked  map[string]int
	mended bool
}

const brokenUsage = `"usage":{"prompt_tokens":1000,"completion_tokens":100}`

func newBreaking(t *testing.T) *breaking {
	s := &breaking{asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// breaks reports whether a call for that prompt is to break.
func (s *breaking) breaks(prompt string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[prompt]++
	return prompt == "never" && !s.mended || prompt != "good" && s.asked[prompt] == 1
}

func (s *breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	prompt := "good"
	for _, word := range []string{"told", "silent", "never"} {
		if bytes.Contains(body, []byte(`"`+word+`"`)) {
			prompt = word
		}
	}
	if !s.breaks(prompt) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],`+brokenUsage+`}`)
		return
	}
	switch prompt {
	case "silent":
		<-r.Context().Done()
	case "told":
		_, _ = io.WriteString(w, `{"id":"x","usage":{"prompt_tokens":1000,"completion_tokens":7},"choices":[{"mess`)
	default:
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"y`)
	}
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// doubtsIn are the usage, the cost and the doubts of lines by the id of their item.
func doubtsIn(t *testing.T, files ...string) map[string]string {
	t.Helper()
	of := map[string]string{}
	for _, file := range files {
		for _, line := range strings.Split(strings.TrimSpace(read(t, file)), "\n") {
			var l journal.Line
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			h, usd := &l.Headrace, -1.0
			if h.CostUSD != nil {
				usd = *h.CostUSD
			}
			of[l.CustomID] = fmt.Sprintf("%d+%d $%v, %d: %d+%d", h.Usage.InputTokens, h.Usage.OutputTokens, usd, h.Doubtful.Calls, h.Doubtful.InputTokens, h.Doubtful.OutputTokens)
			if h.Doubtful.Calls == 0 && h.Earlier == nil && strings.Contains(line, "doubtful") {
				t.Errorf("nothing is doubtful, and it is said: %s", line)
			}
		}
	}
	return of
}

// Calls whose answer was cut off stand apart in the lines of results and failures, in the summary for
// people and for programs, and in what status says; usage and cost are those of whole answers. A
// later run takes such lines as any others.
func TestDoubtfulCallsStandApart(t *testing.T) {
	in := writeLines(t, `{"id":"g","prompt":"good"}`+"\n"+`{"id":"t","prompt":"told"}`+"\n"+`{"id":"s","prompt":"silent"}`+"\n"+`{"id":"n","prompt":"never"}`+"\n")
	run := func(base, out string, more ...string) (int, string) {
		args := []string{"run", in, "-o", out, "--base-url", base, "--model", "m", "-c", "1", "--max-attempts", "2", "--timeout", "3s", "--keep-going", "--price", "1,10"}
		code, _, said := inWorld(t, nil, nil, append(args, more...)...)
		return code, said
	}
	server := newBreaking(t)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	code, said := run(server.URL, out, "--progress", "json", "--log-level", "info")
	if code != exit.ItemsFailed {
		t.Fatalf("exit code %d: %s", code, said)
	}
	keeps(t, said)
	if !strings.Contains(said, `"input_tokens":3000,"output_tokens":300,`) || !strings.Contains(said, `"doubtful":{"calls":4,"input_tokens":1000,"output_tokens":7,"cached_tokens":0}`) || !strings.Contains(said, `"doubtful_calls":4`) {
		t.Errorf("programs are told %s", said)
	}
	got := doubtsIn(t, out, strings.Replace(out, ".jsonl", ".errors.jsonl", 1))
	for id, want := range map[string]string{
		"g": "1000+100 $0.002, 0: 0+0", "t": "1000+100 $0.002, 1: 1000+7", "s": "1000+100 $0.002, 1: 0+0", "n": "0+0 $-1, 2: 0+0",
	} {
		if got[id] != want {
			t.Errorf("%s: %s, want %s", id, got[id], want)
		}
	}
	const people = " 4 calls were cut off and may be billed: 1,000 tokens in, 7 out, or more\n"
	if _, says, _ := inWorld(t, nil, nil, "status", out); !strings.Contains(says, "  doubtful  "+people) {
		t.Error(says)
	}
	server.mended = true
	if code, said = run(server.URL, out, "--retry-failed"); code != exit.OK || strings.Contains(said, "doubtful") {
		t.Errorf("what is left: exit code %d: %s", code, said)
	}
	if got := doubtsIn(t, out)["n"]; got != "1000+100 $0.002, 0: 0+0" {
		t.Errorf("asked again: %s", got)
	}
	if code, said = run(newBreaking(t).URL, filepath.Join(t.TempDir(), "again.jsonl"), "--progress", "plain"); code != exit.ItemsFailed || !strings.Contains(said, "\ndoubtful      "+people) {
		t.Errorf("people are told, with exit code %d: %s", code, said)
	}
}
