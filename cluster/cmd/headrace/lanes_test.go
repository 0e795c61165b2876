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

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
)

// keyed is a provider that knows keys, and counts calls by key and model.
type keyed struct {
	mu     sync.Mutex
	calls  map[string]int
	tokens int // of all answers
	broke  bool
}

const answerTokens = 5

// newKeyed starts one that refuses keys which end in "bad". It does so for one model alone, so that it shows whether another
// lane of that key stops, too.
func newKeyed(t *testing.T) (k *keyed, url string) {
	t.Helper()
	k = &keyed{calls: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Model string }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		k.mu.Lock()
		refused := k.broke || strings.HasSuffix(key, "bad") && asked.Model == "small"
		k.calls[key+" "+asked.Model]++
		if !refused {
			k.tokens += answerTokens
		}
		k.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if refused {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`)
			return
		}
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":0,"completion_tokens":%d,"total_tokens":%[2]d}}`, asked.Model, answerTokens)
	}))
	t.Cleanup(s.Close)
	return k, s.URL
}

func (k *keyed) of(what string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for call, calls := range k.calls {
		if strings.Contains(call, what) {
			n += calls
		}
	}
	return n
}

// lanesOf writes a file of three lanes: two of a key that may be bad, and one of a good key.
func (h *here) lanesOf(name, url string) {
	h.write(name, strings.ReplaceAll(`model: gpt-4o-mini
lanes:
  first:
    provider: openai
    base-url: URL/v1
    api-key-env: FIRST_KEY
    account: acme
    models: {gpt-4o-mini: small}
    price: {input: 0, output: 1000000}
  second:
    provider: openai
    base-url: URL/v1
    api-key-env: FIRST_KEY
    account: acme
    models: {gpt-4o-mini: smaller}
    price: {input: 0, output: 1000000}
  third:
    provider: openai
    base-url: URL/v1
    api-key-env: THIRD_KEY
    price: {input: 0, output: 1000000}
pools:
  main:
    spread: [first, second, third]
`, "URL", url))
}

// The lanes and pools of a file go with a job: each worker calls all of them with its own keys, and the files are those of a run in
// one process. A lane of another key takes what the lanes of a refused key leave, and these stop together, on all workers.
func TestLanesGoWithTheJob(t *testing.T) {
	t.Parallel()
	const items = 300
	for name, key := range map[string]string{"good keys": "sk-first-0123456789-good", "a refused key": "sk-first-0123456789-bad"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHere(t)
			provider, url := newKeyed(t)
			h.write("in.jsonl", questions(items))
			h.lanesOf("lanes.yaml", url)
			h.hub()
			h.env["FIRST_KEY"], h.env["THIRD_KEY"] = key, "sk-third-0123456789-good"
			for range 3 {
				h.worker("-c 8" + oneKeeper)
			}
			h.all("submit {}/in.jsonl -o {}/out.jsonl --config {}/lanes.yaml --chunk-lines 50 --wait", items)
			first, second, third := provider.of(" small"), provider.of(" smaller")-0, provider.of("sk-third")
			first -= second
			t.Logf("%d, %d and %d calls", first, second, third)
			text, err := os.ReadFile(filepath.Join(h.dir, "out.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for _, lane := range []string{"first/small", "second/smaller", "third/gpt-4o-mini"} {
				n := strings.Count(string(text), `"lane":"`+lane+`"`)
				least, most := 1, items-2 // how they share it depends on how busy the machine is
				if key != "sk-first-0123456789-good" {
					least, most = 0, items/10
				}
				if lane != "third/gpt-4o-mini" && (n < least || n > most) {
					t.Errorf("%d results are of lane %s, want %d to %d", n, lane, least, most)
				}
			}
			if strings.HasSuffix(key, "bad") {
				said := h.eventually("limits ls", "account acme has stopped, with its limits openai/small, openai/smaller: ", "Incorrect API key provided")
				if strings.Contains(said, "account acme#") {
					t.Error(said)
				}
				h.eventually("limits ls --json", `"account":"acme#`, `"stopped":"`)
			}
			if strings.Contains(string(text), "sk-") || strings.Contains(h.must(exit.OK, "jobs ls --json"), "sk-") {
				t.Error("a key is shown")
			}
		})
	}
}

// A cap holds over three workers and all lanes of a job. A lane whose price is not known ends it before any call. A trial takes lanes,
// too.
func TestLanesKeepToTheCap(t *testing.T) {
	t.Parallel()
	const most = 500 // USD, of 1,500
	h := newHere(t)
	provider, url := newKeyed(t)
	h.write("in.jsonl", questions(300))
	h.lanesOf("lanes.yaml", url)
	text, _ := os.ReadFile(filepath.Join(h.dir, "lanes.yaml"))
	h.write("unpriced.yaml", strings.Replace(string(text), "    price: {input: 0, output: 1000000}\n", "", 1))
	h.hub()
	h.env["FIRST_KEY"], h.env["THIRD_KEY"] = "sk-first-0123456789-good", "sk-third-0123456789-good"
	for range 3 {
		h.worker("-c 8")
	}
	submit := fmt.Sprintf("submit {}/in.jsonl --chunk-lines 50 --param max_tokens=%d --max-cost %d --wait", answerTokens, most)
	h.must(exit.Usage, submit+" -o {}/none.jsonl --config {}/unpriced.yaml", "the price of gpt-4o-mini is not known")
	if n := provider.of(""); n > 0 {
		t.Errorf("%d calls without a price", n)
	}
	h.must(exit.Bound, submit+" -o {}/out.jsonl --config {}/lanes.yaml", "its cap (--max-cost) is reached")
	provider.mu.Lock()
	billed := provider.tokens // a dollar each
	provider.mu.Unlock()
	if billed > most || billed < most*8/10 {
		t.Errorf("$%d are billed, and the cap is $%d", billed, most)
	}
	for _, model := range []string{" small", " smaller", " gpt-4o-mini"} {
		if n := provider.of(model); n < 5 {
			t.Errorf("%d calls of%s", n, model)
		}
	}
	h.must(exit.OK, "run {}/in.jsonl -o {}/trial.jsonl --cluster --config {}/lanes.yaml --limit 20", "20 results in ", "for $100")
}

// Once no lane is left the job ends with 3, and jobs resume lets all of them flow again.
func TestLanesFlowAgainAfterAResume(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	provider, url := newKeyed(t)
	provider.broke = true
	h.write("in.jsonl", questions(100))
	h.lanesOf("lanes.yaml", url)
	h.hub()
	h.env["FIRST_KEY"], h.env["THIRD_KEY"] = "sk-first-0123456789-good", "sk-third-0123456789-good"
	for range 2 {
		h.worker("-c 8")
	}
	submit := "submit {}/in.jsonl -o {}/out.jsonl --config {}/lanes.yaml --chunk-lines 50 --wait --job keyed"
	h.must(exit.Stopped, submit, "stopped: ", "Incorrect API key provided")
	provider.mu.Lock()
	provider.broke = false
	provider.mu.Unlock()
	h.must(exit.OK, "jobs resume keyed")
	h.all(submit, 100)
	for _, model := range []string{" small", " smaller", " gpt-4o-mini"} {
		if n := provider.of(model); n < 5 {
			t.Errorf("%d calls of%s", n, model)
		}
	}
}

// all runs a command that makes results in out.jsonl. No item fails because its key was refused: it goes out on another lane, or
// was not run.
func (h *here) all(line string, items int) {
	h.t.Helper()
	h.must(exit.OK, line)
	if n := len(h.resultsOf("out.jsonl")); n != items {
		h.t.Fatalf("headrace %s: %d of %d results", line, n, items)
	}
}

// Words of lanes that would be about a worker's machine do not go with a job: submit refuses them, and so does a worker
// that finds them in a job.
func TestLanesThatDoNotGoWithAJob(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.write("in.jsonl", questions(3))
	h.write("key", "sk-file-0123456789")
	for name, c := range map[string]struct{ words, pools, says string }{
		"headers": {"provider: openai\n    headers: {X-Team: a}", "spread: [one]", "headers: they do not go with a job"},
		"a file":  {"provider: openai\n    api-key-file: " + h.dir + "/key", "spread: [one]", "api-key-file: a job names no file of a worker"},
		"a host":  {"base-url: https://example.com/v1\n    api-key-env: ONE_KEY", "spread: [one]", "sends keys of workers only to the servers of their provider and to the worker's own machine, and not to example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "lanes:\n  one:\n    " + c.words + "\n  two:\n    provider: openai\npools:\n  main:\n    " + c.pools + "\n"
			h.write("lanes.yaml", text)
			h.must(exit.Usage, "submit {}/in.jsonl -o {}/o.jsonl --config {}/lanes.yaml --cluster nats://T@127.0.0.1:1", "/lanes.yaml:", c.says)
			h.must(exit.Usage, "run {}/in.jsonl -o {}/o.jsonl --config {}/lanes.yaml --cluster", "/lanes.yaml:", c.says)
			out := &said{}
			s := run.NewSettings(h.world(nil, out, out), settings.Vendor|settings.Keys|settings.Pace)
			s.Register(&cobra.Command{})
			if err := s.Complete(); err != nil {
				t.Fatal(err)
			}
			_, err := opener(s)(&job.Record{Asking: job.Asking{Settings: map[string]string{run.JobLanes: text}}})
			if err == nil || !strings.Contains(err.Error(), "the job's lanes:") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("a worker: %v", err)
			}
		})
	}
	h.write("lanes.yaml", "lanes:\n  one:\n    provider: sim\n")
	h.must(exit.Usage, "submit {}/in.jsonl -o {}/o.jsonl --config {}/lanes.yaml --cluster nats://T@127.0.0.1:1 --limit-name org", "--limit-name names the limit of one provider")
	h.must(exit.Usage, "worker --join nats://T@127.0.0.1:1 --config {}/lanes.yaml", "lanes: only headrace run, submit, plan and lanes know them")
}
