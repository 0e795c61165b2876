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

// ordered is two providers at one address: calls go to the first by the model good, to the second by the model dear.
type ordered struct {
	mu    sync.Mutex
	down  bool // good answers nothing but 503
	full  bool // there is no room in the flex tier
	calls map[string]int
}

func newOrdered(t *testing.T) (o *ordered, url string) {
	t.Helper()
	o = &ordered{calls: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model string
			Tier  string `json:"service_tier"`
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		o.mu.Lock()
		o.calls[strings.TrimSuffix(asked.Model+" "+asked.Tier, " ")]++
		down, full := o.down && asked.Model == "good", o.full && asked.Tier == "flex"
		o.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case down:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"The server is down"}}`)
			return
		case full:
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"no room","code":"resource_unavailable"}}`)
			return
		}
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":%q,"service_tier":%q,"choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, asked.Model, asked.Tier)
	}))
	t.Cleanup(s.Close)
	return o, s.URL
}

// of returns the number of calls of a model, and in a tier if that is named.
func (o *ordered) of(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[what]
}

func orderedLanes(url, pool string) string {
	return fmt.Sprintf("model: m\nlanes:\n  good: {provider: openai, base-url: %q, api-key-env: A_KEY, models: {m: good}}\n  dear: {provider: openai, base-url: %[1]q, api-key-env: B_KEY, models: {m: dear}}\npools:\n  main: %s\n", url+"/v1", pool)
}

// In a job a pool prefers lanes as it does in a run on one machine: the dear lane gets no call while the better one is well, and
// all lines once that has been ill for long enough. Their results are marked.
func TestJobPrefersLanes(t *testing.T) {
	t.Parallel()
	const items = 300
	for name, down := range map[string]bool{"well": false, "ill": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHere(t)
			provider, url := newOrdered(t)
			provider.down = down
			h.write("in.jsonl", questions(items))
			h.write("lanes.yaml", orderedLanes(url, "{prefer: [good, dear], after: 1s}"))
			h.hub()
			h.env["A_KEY"], h.env["B_KEY"] = "sk-first-0123456789", "sk-second-0123456789"
			for range 3 {
				h.worker("-c 8")
			}
			h.all("submit {}/in.jsonl -o {}/out.jsonl --config {}/lanes.yaml --chunk-lines 50 --wait", items)
			text, err := os.ReadFile(filepath.Join(h.dir, "out.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			fell := strings.Count(string(text), `"fallback":true`)
			t.Logf("%d calls of the better lane, %d of the dear one; %d results are marked", provider.of("good"), provider.of("dear"), fell)
			want := 0
			if down {
				want = items
			}
			if got := provider.of("dear"); got != want || fell != want {
				t.Errorf("%d calls of the dear lane, and %d marked results, want %d", got, fell, want)
			}
			if down && provider.of("good") > items/4 {
				t.Errorf("%d calls of a lane that is down", provider.of("good"))
			}
		})
	}
}

// In a job with a sticky pool, all lines of a beginning go to one lane, no matter which worker has them.
func TestJobKeepsLinesAtHome(t *testing.T) {
	t.Parallel()
	const beginnings, lines = 12, 20
	h := newHere(t)
	_, url := newOrdered(t)
	var in strings.Builder
	for i := range beginnings * lines {
		fmt.Fprintf(&in, `{"prompt":"question %d","metadata":{"book":"b%d"}}`+"\n", i, i%beginnings)
	}
	h.write("in.jsonl", in.String())
	h.write("lanes.yaml", orderedLanes(url, "{sticky: [good, dear], by: metadata.book, patience: 1m}"))
	h.hub()
	h.env["A_KEY"], h.env["B_KEY"] = "sk-first-0123456789", "sk-second-0123456789"
	for range 3 {
		h.worker("-c 8")
	}
	h.all("submit {}/in.jsonl -o {}/out.jsonl --config {}/lanes.yaml --chunk-lines 20 --wait", beginnings*lines)
	homes, both := map[string]string{}, map[string]bool{}
	text, err := os.ReadFile(filepath.Join(h.dir, "out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Metadata struct{ Book string }
			Headrace struct {
				Lane     string
				Fallback bool
				Metadata struct{ Book string }
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		book := l.Metadata.Book + l.Headrace.Metadata.Book
		if was := homes[book]; book == "" || l.Headrace.Fallback || was != "" && was != l.Headrace.Lane {
			t.Errorf("lines of %q are on %s and on %s", book, was, l.Headrace.Lane)
		}
		homes[book], both[l.Headrace.Lane] = l.Headrace.Lane, true
	}
	if len(homes) != beginnings || len(both) != 2 {
		t.Errorf("the homes are %v", homes)
	}
}

// In a job, lines go to the standard tier once there was no room in the flex tier for --spill, and none do before.
func TestJobFallsToTheStandardTier(t *testing.T) {
	t.Parallel()
	const items = 120
	for name, c := range map[string]struct {
		full         bool
		words, flags string
	}{"room": {false, ", service-tier: auto", ""}, "full": {true, ", service-tier: auto", " --spill 1s"}, "by the flag": {true, "", " --service-tier auto --spill 1s"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHere(t)
			provider, url := newOrdered(t)
			provider.full = c.full
			h.write("in.jsonl", questions(items))
			h.write("lanes.yaml", fmt.Sprintf("model: m\nlanes:\n  one: {provider: openai, preset: openai, base-url: %q, api-key-env: A_KEY, models: {m: good}%s}\n", url+"/v1", c.words))
			h.hub()
			h.env["A_KEY"] = "sk-first-0123456789"
			for range 3 {
				h.worker("-c 8")
			}
			h.all("submit {}/in.jsonl -o {}/out.jsonl --config {}/lanes.yaml --chunk-lines 40 --wait"+c.flags, items)
			flex, standard := provider.of("good flex"), provider.of("good")+provider.of("good default")
			t.Logf("%d calls in the flex tier, %d in the standard one", flex, standard)
			if want := map[bool]int{false: 0, true: items}[c.full]; standard != want || flex == 0 {
				t.Errorf("%d calls in the standard tier, want %d", standard, want)
			}
		})
	}
	h := newHere(t)
	h.write("in.jsonl", questions(3))
	h.must(exit.Usage, "submit {}/in.jsonl -o {}/o.jsonl --model m --service-tier auto --cluster nats://T@127.0.0.1:1", "in a cluster both tiers of service need lanes")
}
