package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
)

// forms is a provider whose answers have a form that depends on the prompt, and on how often it was asked.
type forms struct {
	mu     sync.Mutex
	asked  map[string]int
	answer func(number, nth int) (content, finish string)
}

// Tokens of each call.
const formInput, formOutput = 3, 5

func newForms(t *testing.T, answer func(number, nth int) (content, finish string)) (f *forms, url string) {
	t.Helper()
	f = &forms{asked: map[string]int{}, answer: answer}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Messages []struct{ Content string } }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		prompt, number := asked.Messages[len(asked.Messages)-1].Content, 0
		_, _ = fmt.Sscanf(prompt, "question %d", &number)
		f.mu.Lock()
		f.asked[prompt]++
		content, finish := f.answer(number, f.asked[prompt])
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":%q}],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, content, finish, formInput, formOutput, formInput+formOutput)
	}))
	t.Cleanup(s.Close)
	return f, s.URL
}

// calls returns how often a question was asked, or all of them if the number is -1.
func (f *forms) calls(number int) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for prompt, calls := range f.asked {
		if number < 0 || prompt == fmt.Sprint("question ", number) {
			n += calls
		}
	}
	return n
}

func (f *forms) answers(answer func(number, nth int) (content, finish string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

func fitting(int, int) (content, finish string)    { return `{"n":1}`, "stop" }
func misfitting(int, int) (content, finish string) { return "One, I think.", "stop" }

// schema writes a schema of two files.
func (h *here) schema() {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Join(h.dir, "parts"), 0o700); err != nil {
		h.t.Fatal(err)
	}
	h.write("answer.json", `{"$ref":"parts/answer.json"}`)
	h.write("parts/answer.json", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
}

// An ended line is one of a result or errors file.
type endedLine struct {
	Error *struct{ Code, Message string }
	Head  struct {
		Line  int
		Usage struct {
			Output int `json:"output_tokens"`
		}
		Cost float64 `json:"cost_usd"`
	} `json:"headrace"`
	Response struct {
		Body struct{ Choices json.RawMessage }
	}
}

// ended returns the lines of both files by their numbers, and fails the test if a line is there twice.
func (h *here) ended(names ...string) map[int]endedLine {
	h.t.Helper()
	all := map[int]endedLine{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(h.dir, name))
		if err != nil {
			h.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var l endedLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				h.t.Fatal(err)
			}
			if _, twice := all[l.Head.Line]; twice {
				h.t.Errorf("line %d is there twice", l.Head.Line)
			}
			all[l.Head.Line] = l
		}
	}
	return all
}

// The schema goes with the job, with the files that it refers to, and each of two workers checks the answers by it. What does not
// fit is asked again, within a tenth of the items, and an answer that was cut off is not. Each call counts in the cost.
func TestAnswersOfAJobMustFit(t *testing.T) {
	t.Parallel()
	const items, slips, never, cut = 1000, 15, 150, 707
	h := newHere(t)
	provider, url := newForms(t, func(number, nth int) (content, finish string) {
		switch {
		case number == cut:
			return `{"n":`, "length"
		case number%never == 1, number%slips == 2 && nth == 1:
			return `{"n":"one"}`, "stop"
		}
		return fitting(number, nth)
	})
	h.write("in.jsonl", questions(items))
	h.schema()
	h.hub()
	h.env["OPENAI_API_KEY"], h.env["HEADRACE_SCHEMA"] = "sk-0123456789", "elsewhere.json" // of the job alone, and not of workers
	for range 2 {
		h.worker("-c 4")
	}
	delete(h.env, "HEADRACE_SCHEMA")
	submit := "submit {}/in.jsonl -o {}/out.jsonl --base-url " + url + " --model m --schema {}/answer.json --price 0,1000000 --chunk-lines 50 --wait"
	h.must(exit.ItemsFailed, submit, "items failed for good")
	calls, tokens := provider.calls(-1), 0
	if calls <= items+items/20 || calls > items+items/10 || provider.calls(cut) != 1 {
		t.Errorf("%d calls for %d items, and %d for the answer that was cut off", calls, items, provider.calls(cut))
	}
	all := h.ended("out.jsonl", "out.errors.jsonl")
	for line, l := range all {
		number := line - 1
		tokens += l.Head.Usage.Output
		n := provider.calls(number)
		switch slip := number%slips == 2; {
		case number == cut:
			if l.Error == nil || l.Error.Message != "schema: 200: the answer was cut off at its length limit: the answer is not JSON: it ends too early" {
				t.Errorf("the answer that was cut off: %+v", l)
			}
		case number%never == 1, slip && n == 1:
			if l.Error == nil || l.Error.Code != "schema" || l.Error.Message != "schema: 200: at /n: got string, want integer" || !strings.Contains(string(l.Response.Body.Choices), "one") {
				t.Errorf("line %d: %+v", line, l)
			}
		case l.Error != nil || n > 1 && !slip:
			t.Errorf("line %d after %d calls: %+v", line, n, l.Error)
		}
		if l.Head.Usage.Output != n*formOutput || l.Head.Cost != float64(n*formOutput) || n > 3 {
			t.Errorf("line %d: %d calls, and %+v", line, n, l.Head)
		}
	}
	if len(all) != items || tokens != calls*formOutput {
		t.Errorf("%d lines with %d tokens, want %d with %d", len(all), tokens, items, calls*formOutput)
	}
	job := strings.TrimSpace(h.must(exit.ItemsFailed, submit, "submitted before, with the same input, settings and output: it is done"))
	h.write("parts/answer.json", `{"type":"object"}`)
	if other := strings.TrimSpace(h.must(exit.OK, strings.TrimSuffix(submit, " --wait"))); other == job {
		t.Error("with another schema it is the same job")
	}
	if text := h.must(exit.OK, "jobs status --json "+job); !strings.Contains(text, "schema.json") {
		t.Error("the record does not show the schema")
	}
}

// A job whose first answers do not fit stops with 3, and says why wherever it is shown. Resumed, once answers fit, it asks what has
// not failed.
func TestAJobStopsIfNoAnswerFits(t *testing.T) {
	t.Parallel()
	const items = 400
	h := newHere(t)
	provider, url := newForms(t, misfitting)
	h.write("in.jsonl", questions(items))
	h.schema()
	h.hub()
	h.env["OPENAI_API_KEY"] = "sk-0123456789"
	for range 2 {
		h.worker("-c 4")
	}
	submit := "submit {}/in.jsonl -o {}/out.jsonl --base-url " + url + " --model m --schema {}/answer.json --chunk-lines 50 --wait"
	const why = "none of the first 20 answers fits the schema: the answer is not JSON: invalid character 'O'"
	job := strings.TrimSpace(h.must(exit.Stopped, submit, "stopped: "+why, "headrace jobs resume "))
	h.must(exit.OK, "jobs status "+job, "stopped", why)
	h.must(exit.OK, "jobs ls", "stopped")
	h.must(exit.OK, "jobs ls --json", why[:50])
	h.must(exit.Usage, "jobs fetch "+job+" -o {}/some.jsonl", why)
	if calls := provider.calls(-1); calls < 20 || calls > 80 {
		t.Errorf("%d calls before the job stopped", calls)
	}
	provider.answers(fitting)
	h.must(exit.OK, "jobs resume "+job)
	h.must(exit.ItemsFailed, submit, " results in ")
	all, failed := h.ended("out.jsonl", "out.errors.jsonl"), 0
	for _, l := range all {
		if l.Error != nil {
			failed++
		}
	}
	if len(all) != items || failed < 10 || failed > 2*19 {
		t.Errorf("%d lines, of which %d have failed", len(all), failed)
	}
}

// What cannot be checked is refused before any call: by submit, or when the input is read. The trial checks answers, too.
func TestSchemasThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	provider, url := newForms(t, fitting)
	h.write("in.jsonl", questions(30))
	h.write("vectors.jsonl", `{"custom_id":"v","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"x"}}`+"\n")
	h.schema()
	h.write("remote.json", `{"$ref":"https://example.com/s.json"}`)
	h.write("above.json", `{"$ref":"../s.json"}`)
	h.write("long.json", `{"$comment":"`+strings.Repeat("x", 300_000)+`"}`)
	h.hub()
	h.env["OPENAI_API_KEY"] = "sk-0123456789"
	h.worker("-c 4")
	submit := "submit {}/in.jsonl -o {}/out.jsonl --base-url " + url + " --model m --wait"
	for flags, says := range map[string]string{
		" --schema {}/remote.json":                     "remote.json: https://example.com/s.json: nothing is fetched",
		" --schema {}/above.json":                      "above.json: s.json: no such file",
		" --schema {}/none.json":                       "none.json: no such file",
		" --schema {}/long.json":                       "and a job brings 262144 at most to its workers",
		" --schema-retries 1":                          "--schema-retries has no meaning without --schema",
		" --schema {}/answer.json --schema-retries 11": "schema-retries: 11 is too large",
	} {
		h.must(exit.Usage, submit+flags, says)
	}
	h.must(exit.Usage, strings.Replace(submit, "in.jsonl", "vectors.jsonl", 1)+" --schema {}/answer.json", "its answer has no text that --schema could check: /v1/embeddings")
	h.must(exit.Usage, "worker --schema {}/answer.json", "unknown flag: --schema")
	if n := provider.calls(-1); n > 0 {
		t.Errorf("%d calls", n)
	}
	trial := "run {}/in.jsonl -o {}/trial.jsonl --cluster --base-url " + url + " --model m --schema {}/answer.json"
	h.must(exit.OK, trial, "30 results in ")
	provider.answers(misfitting)
	h.must(exit.Stopped, strings.ReplaceAll(trial, "trial.jsonl", "none.jsonl"), "none of the first 20 answers fits the schema", "Continue with:\nheadrace run")
}
