package command

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// linesCost returns the cost that the lines of a result file state, and the number of lines
// with and without a price. A line is faulty if its cost is not that of its own usage at
// that price.
func linesCost(text []byte, others string) (sum float64, priced, unpriced int, fault string) {
	table, err := price.Read("", others, "")
	if err != nil {
		return 0, 0, 0, err.Error()
	}
	for line := range bytes.Lines(text) {
		var l struct {
			Headrace struct {
				Model string
				Usage struct {
					In     int64 `json:"input_tokens"`
					Out    int64 `json:"output_tokens"`
					Cached int64 `json:"cached_tokens"`
					Write  int64 `json:"cache_write_tokens"`
				}
				USD *float64 `json:"cost_usd"`
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return 0, 0, 0, err.Error()
		}
		h := l.Headrace
		if h.USD == nil {
			unpriced++
			continue
		}
		used := provider.Usage{InputTokens: h.Usage.In, OutputTokens: h.Usage.Out, CachedTokens: h.Usage.Cached, CacheWriteTokens: h.Usage.Write}
		if want, _, ok := table.Cost(h.Model, used, time.Now()); !ok || want.USD() != *h.USD {
			return 0, 0, 0, "not " + strconv.FormatFloat(want.USD(), 'f', -1, 64) + " in " + string(line)
		}
		sum, priced = sum+*h.USD, priced+1
	}
	return sum, priced, unpriced, ""
}

// checkCosts compares what lines have cost with their usage, and how many of them say so:
// costs FILE IN,OUT PRICED UNPRICED. The sum goes to $COST, as it is shown.
func checkCosts(ts *testscript.TestScript, _ bool, args []string) {
	sum, priced, unpriced, fault := linesCost([]byte(ts.ReadFile(args[0])), args[1])
	if fault != "" || strconv.Itoa(priced) != args[2] || strconv.Itoa(unpriced) != args[3] {
		ts.Fatalf("%s: %d lines with a cost and %d without one, want %s and %s: %s", args[0], priced, unpriced, args[2], args[3], fault)
	}
	ts.Setenv("COST", regexp.QuoteMeta(words.Money(sum)))
}

// What a try has cost that brought no answer stands in the line of its item, and so does
// what failed in the end; tokens from a cache have their own price.
func TestCostsOfWhatBroke(t *testing.T) {
	tries := make(chan int, 1)
	tries <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := <-tries + 1
		tries <- n
		w.Header().Set("Content-Type", "application/json")
		choices := `[{"message":{"content":"yes"},"finish_reason":"stop"}]`
		if n == 1 || bytes.Contains(body, []byte("never")) {
			choices = "[]"
		}
		_, _ = io.WriteString(w, `{"choices":`+choices+`,"usage":{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":600}}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	must.Do(t, os.WriteFile(in, []byte(`{"prompt":"again"}`+"\n"+`{"prompt":"never"}`+"\n"), 0o600))
	code, _, said := inWorld(t, nil, nil, "run", in, "-o", out, "--base-url", server.URL, "--model", "m", "-c", "1", "--max-attempts", "3", "--price", "2.5,10,1.25")
	if code != exit.ItemsFailed {
		t.Fatalf("exit code %d: %s", code, said)
	}
	all := 0.0
	for _, file := range []string{out, filepath.Join(dir, "out.errors.jsonl")} {
		text := must.Get(os.ReadFile(file))(t)
		sum, priced, unpriced, fault := linesCost(text, "2.5,10,1.25")
		if fault != "" || priced != 1 || unpriced != 0 {
			t.Errorf("%s: %d and %d, %s", text, priced, unpriced, fault)
		}
		all += sum
	}
	const aTry = 0.00275 // 400 · 2.5 + 600 · 1.25 + 100 · 10, in millionths
	if n := <-tries; math.Abs(all-float64(n)*aTry) > 1e-12 || n < 5 {
		t.Errorf("%v of %d tries", all, n)
	}
	if want := "\ncost           " + words.Money(all) + ", "; !strings.Contains(said, want) {
		t.Errorf("no %q in %s", want, said)
	}
	if _, said, _ := inWorld(t, nil, nil, "status", out); !regexp.MustCompile(`; \$0\.01\d*, of it \$0\.00\d+ for items that failed\n`).MatchString(said) {
		t.Error(said)
	}
}

// What was read from a cache and written to one costs what the list says of the vendor's model,
// and the line tells of both. A user's own price of it counts before the list's.
func TestCostsOfCaches(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn",`+
			`"usage":{"input_tokens":100,"cache_creation_input_tokens":300,"cache_read_input_tokens":600,"output_tokens":100}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	in, own := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "own.json")
	for file, text := range map[string]string{
		in:  `{"prompt":"one","model":"claude-sonnet-4-5-20250929"}` + "\n",
		own: `{"claude-sonnet-4-5":{"input":1,"output":1,"cached":1,"cache_write":11}}`,
	} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for i, tt := range []struct {
		given []string
		want  string
	}{
		{nil, `"cost_usd":0.003105,"cost_source":"` + price.FromTable() + `",`}, // 100 · 3 + 300 · 3.75 + 600 · 0.3 + 100 · 15, in millionths
		{[]string{"--price", "9,9"}, `"cost_usd":0.0099,"cost_source":"flag",`},
		{[]string{"--prices", own, "--price", "9,9"}, `"cost_usd":0.0041,"cost_source":"file",`},
	} {
		out := filepath.Join(dir, "out"+strconv.Itoa(i))
		env := map[string]string{"ANTHROPIC_API_KEY": "a-key-of-a-test-123"}
		code, _, said := inWorld(t, nil, env, append([]string{"run", in, "-o", out, "--provider", "anthropic", "--preset", "anthropic", "--base-url", server.URL}, tt.given...)...)
		text, err := os.ReadFile(out)
		if err != nil || code != exit.OK || !strings.Contains(string(text), tt.want) || !strings.Contains(string(text), `"cached_tokens":600,"cache_write_tokens":300}`) {
			t.Errorf("%v: exit code %d, %v: %s%s, want %s", tt.given, code, err, text, said, tt.want)
		}
	}
}

// Vertex names the tier of an answer in a word of its own: each line costs what its tier does.
func TestVertexTiersCost(t *testing.T) {
	words := []string{"ON_DEMAND", "ON_DEMAND_FLEX", "ON_DEMAND_PRIORITY"}
	asked := make(chan string, len(words))
	for _, word := range words {
		asked <- word
	}
	vertex := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"finishReason":"STOP"}],`+
			`"usageMetadata":{"promptTokenCount":1000000,"candidatesTokenCount":1000000,"totalTokenCount":2000000,"trafficType":"`+<-asked+`"}}`)
	}))
	t.Cleanup(vertex.Close)
	dir := t.TempDir()
	in, out, prices := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "prices.json")
	must.Do(t, os.WriteFile(in, []byte(strings.Repeat(`{"prompt":"Hi"}`+"\n", len(words))), 0o600))
	must.Do(t, os.WriteFile(prices, []byte(`{"gemini-x":{"input":1,"output":1,"when":[{"tier":"flex","times":0.5},{"tier":"priority","times":2}]}}`), 0o600))
	code, _, said := inWorld(t, nil, nil, "run", in, "-o", out, "--provider", "vertex-express", "--base-url", vertex.URL, "--api-key-env", "none",
		"--model", "gemini-x", "--prices", prices, "-c", "1", "--progress", "none")
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var cost []float64
	for line := range bytes.Lines(must.Get(os.ReadFile(out))(t)) {
		var l struct {
			Headrace struct {
				USD float64 `json:"cost_usd"`
			}
		}
		must.Do(t, json.Unmarshal(line, &l))
		cost = append(cost, l.Headrace.USD)
	}
	if !slices.Equal(cost, []float64{2, 1, 4}) {
		t.Errorf("the lines cost %v, want 2, 1 and 4", cost)
	}
}
