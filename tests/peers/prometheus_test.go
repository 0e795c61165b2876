package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/headrace/headrace/internal/must"
)

// shown is an event of --progress json, as far as these tests read it.
type shown struct {
	Event, Message                      string
	Succeeded, Failed, Calls, Throttled float64
	Redistributed, Cooldowns            float64
	InputTokens                         float64 `json:"input_tokens"`
	OutputTokens                        float64 `json:"output_tokens"`
	ElapsedS                            float64 `json:"elapsed_s"`
	Spent                               struct{ USD float64 }
}

// A real Prometheus, with the example's configuration and alerts, scrapes a run: each scrape succeeds, no counter
// falls, no alert fires, and the counters equal the summary. promtool finds no fault in the page, the alerts and
// the configuration.
func TestPrometheusReadsARun(t *testing.T) {
	if os.Getenv("PEERS") == "" {
		t.Skip("needs Prometheus and headrace sim: tests/peers/run starts them")
	}
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not here: PEERS_INSTALL=1 tests/peers/run installs it, as root", program)
		}
	}
	t.Parallel()
	items := must.Get(strconv.Atoi(os.Getenv("PEERS_ITEMS")))(t) * 2 / 5 // at 100 a second: 8 s, or 40 s
	dir := t.TempDir()
	var prompts bytes.Buffer
	for k := range items {
		fmt.Fprintf(&prompts, "{\"key\": \"k%d\", \"prompt\": \"a prompt\"}\n", k)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "prompts.jsonl"), prompts.Bytes(), 0o600))
	watch, ask := startPrometheus(t, dir)
	run := exec.CommandContext(t.Context(), os.Getenv("PEERS_HEADRACE"), "run", "prompts.jsonl", "-o", "out.jsonl", "--model", "m",
		"--base-url", os.Getenv("PEERS_SIM_SHOWN"), "--api-key-env", "none", "--price", "1,2", "--metrics-addr", "127.0.0.1:0",
		"--linger", "10m", "--progress", "json")
	run.Dir = dir
	said := must.Get(run.StderrPipe())(t)
	must.Do(t, run.Start())
	events := bufio.NewScanner(said)
	events.Buffer(nil, 1<<20)
	until := func(wanted func(*shown) bool) (e shown) {
		for events.Scan() {
			e = shown{}
			if json.Unmarshal(events.Bytes(), &e) == nil && wanted(&e) {
				return e
			}
		}
		t.Fatalf("the run ended: %v", run.Wait())
		return e
	}
	first := until(func(e *shown) bool { return strings.HasPrefix(e.Message, "metrics are at ") })
	address := strings.TrimPrefix(first.Message, "metrics are at ")
	watch(address)

	sum := until(func(e *shown) bool { return e.Event == "summary" })
	if sum.Succeeded != float64(items) || sum.Throttled == 0 {
		t.Errorf("the run: %+v", sum)
	}
	for query, want := range map[string]float64{
		`sum(headrace_items_total{result="succeeded"})`:                              sum.Succeeded,
		`sum(headrace_items_total{result="failed"})`:                                 sum.Failed,
		`sum(headrace_calls_total)`:                                                  sum.Calls,
		`sum(headrace_calls_total{outcome="throttled"})`:                             sum.Throttled,
		`headrace_items_redistributed_total`:                                         sum.Redistributed,
		`sum(headrace_lane_cooldowns_total)`:                                         sum.Cooldowns,
		`sum(headrace_tokens_total{type="input"})`:                                   sum.InputTokens,
		`sum(headrace_tokens_total{type="output"})`:                                  sum.OutputTokens,
		`sum(gen_ai_client_operation_duration_seconds_count)`:                        sum.Calls,
		`sum(headrace_call_duration_seconds_bucket{le="+Inf"})`:                      sum.Calls,
		`round(sum(headrace_cost_usd_total), 1e-6)`:                                  sum.Spent.USD,
		`sum(headrace_run_bound_seconds_total) > bool ` + fmt.Sprint(sum.ElapsedS-1): 1,
		`headrace_run_items`:                                                         float64(items),
	} {
		wait(t, query, want, ask)
	}
	// What it saw while the run went on.
	for query, want := range map[string]float64{
		`min_over_time(up[10m])`:                                                1, // no scrape failed
		`count_over_time(up[10m]) >= bool 4`:                                    1,
		`max(resets(headrace_items_total[10m]))`:                                0,
		`max(resets(headrace_run_bound_seconds_total[10m]))`:                    0,
		`max(resets(headrace_call_duration_seconds_bucket[10m]))`:               0,
		`max(resets(gen_ai_client_token_usage_sum[10m]))`:                       0,
		`max(changes(headrace_items_total{result="succeeded"}[10m])) >= bool 3`: 1,
		`count(ALERTS{alertstate="firing"}) or vector(0)`:                       0,
	} {
		wait(t, query, want, ask)
	}

	shown := 0
	for _, expr := range dashboardExprs(t) {
		n, err := ask("count(" + expr + ") or vector(0)")
		if err != nil {
			t.Errorf("the dashboard's %s: %v", expr, err)
		}
		if n > 0 {
			shown++
		}
	}
	if shown < 15 {
		t.Errorf("the dashboard shows %d series of a run", shown)
	}

	page := scrape(t, address)
	parse(t, page)
	if problems, err := promlint.New(bytes.NewReader(page)).Lint(); err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
	promtool(t, page, "check", "metrics")
	promtool(t, nil, "check", "rules", example("alerts.yml"))
	promtool(t, nil, "check", "config", example("prometheus.yml"))
	promtool(t, nil, "test", "rules", example("../../tests/peers/testdata/alerts.yml")) // when each fires
	must.Do(t, run.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, said)
	must.Do(t, run.Wait())
}

// example returns the path of an example.
func example(name string) string { return filepath.Join(os.Getenv("PEERS_EXAMPLES"), name) }

// startPrometheus starts a Prometheus with the example's configuration, but for the period, and waits until it answers.
// It returns a function that lets it scrape an address from now on, each second, and one that asks it.
func startPrometheus(t *testing.T, dir string) (watch func(address string), ask func(query string) (float64, error)) {
	t.Helper()
	configure := func(target string) {
		config := string(must.Get(os.ReadFile(example("prometheus.yml")))(t))
		for _, edit := range [][2]string{
			{`"127.0.0.1:9500"`, target}, {"scrape_interval: 5s", "scrape_interval: 1s\n  evaluation_interval: 1s"}, {"alerts.yml", example("alerts.yml")},
		} {
			if !strings.Contains(config, edit[0]) {
				t.Fatalf("the example has no %q", edit[0])
			}
			config = strings.Replace(config, edit[0], edit[1], 1)
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	}
	configure("") // nothing to scrape: it may need longer to start than a run takes
	at := os.Getenv("PEERS_PROMETHEUS")
	cmd := exec.CommandContext(t.Context(), "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at, "--web.enable-lifecycle", "--log.level=warn")
	var log bytes.Buffer
	cmd.Stderr = &log
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // its code after a signal is its own affair
		if t.Failed() {
			t.Logf("Prometheus: %s", log.String())
		}
	})
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ask = func(query string) (float64, error) {
		req := must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+at+"/api/v1/query?query="+url.QueryEscape(query), nil))(t)
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		var said struct {
			Error string
			Data  struct {
				Result []struct{ Value [2]any }
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || said.Error != "" {
			return 0, fmt.Errorf("%s %w", said.Error, err)
		}
		if n := len(said.Data.Result); n != 1 {
			return 0, fmt.Errorf("%d series", n)
		}
		return strconv.ParseFloat(fmt.Sprint(said.Data.Result[0].Value[1]), 64)
	}
	wait(t, "vector(1)", 1, ask)
	return func(address string) {
		configure(strconv.Quote(strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/metrics")))
		resp := must.Get(client.Post("http://"+at+"/-/reload", "", nil))(t)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("Prometheus does not read its configuration again: %s", resp.Status)
		}
	}, ask
}

// wait asks until the answer is as wanted: the last scrape may be still to come.
func wait(t *testing.T, query string, want float64, ask func(string) (float64, error)) {
	t.Helper()
	var got float64
	var err error
	for range 100 {
		if got, err = ask(query); err == nil && got-want < 1e-6 && want-got < 1e-6 {
			return
		}
		time.Sleep(100 * time.Millisecond) // another process scrapes: nothing here tells when
	}
	t.Errorf("%s: %v (%v), want %v", query, got, err, want)
}

// scrape returns the page at an address.
func scrape(t *testing.T, address string) []byte {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	req.Close = true
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	return must.Get(io.ReadAll(resp.Body))(t)
}

// promtool runs it, and it must find no fault.
func promtool(t *testing.T, input []byte, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Stdin = bytes.NewReader(input)
	if said, err := cmd.CombinedOutput(); err != nil || bytes.Contains(said, []byte("error")) {
		t.Errorf("promtool %s: %v: %s", strings.Join(args, " "), err, said)
	}
}
