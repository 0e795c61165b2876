package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/race"
)

var shownAt = regexp.MustCompile(`metrics are at (http://127\.0\.0\.1:\d+/metrics)\n`)

// scraped waits until a command serves its metrics, and until they are as wanted.
func scraped(t *testing.T, out *said, wanted func(page string) bool) (page string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		found := shownAt.FindStringSubmatch(out.String())
		if found == nil {
			continue
		}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, found[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if page = string(text); err == nil && wanted(page) {
			return page
		}
	}
	t.Fatalf("it does not show what it should:\n%s\n%s", out, page)
	return page
}

// value returns the sum of a metric's series that have a label.
func value(page, name, label string) (sum float64) {
	for line := range strings.Lines(page) {
		series, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if got, labels, _ := strings.Cut(series, "{"); got == name && strings.Contains(labels, label) {
			v, _ := strconv.ParseFloat(number, 64)
			sum += v
		}
	}
	return sum
}

// balanced reports whether as many calls have ended by a keeper's permits as were made. A keeper gives up permits of a worker that is
// silent. Only on a machine that has stalled may calls lack for that reason.
func balanced(keeper, label string, calls float64, stalled time.Duration) bool {
	ended := value(keeper, "headrace_keeper_calls_ended_total", label)
	if stalled < time.Second {
		return ended == calls
	}
	return ended <= calls && calls <= ended+value(keeper, "headrace_keeper_permits_vanished_total", label)
}

// A worker shows what it has done and what it knows as keeper, and a hub what goes through it. After a job the permits
// and the calls of all are as many, and no label names a job.
func TestWorkersAndHubsShowTheirFigures(t *testing.T) {
	t.Parallel()
	const items = 60
	stalled := race.Late(t, 50*time.Millisecond)
	h := newHere(t)
	h.env["XDG_STATE_HOME"] = filepath.Join(h.dir, "state")
	hub := &said{}
	start := func(line string, out *said) (end func()) {
		signals, over := make(chan os.Signal, 1), make(chan int, 1)
		go func() { over <- h.run(line, out, out, signals) }()
		return func() {
			signals <- os.Interrupt
			if code := <-over; code != 0 {
				t.Errorf("%s: %d\n%s", line, code, out)
			}
		}
	}
	defer start("hub --store {}/home --listen 127.0.0.1:0 --metrics-addr 127.0.0.1:0", hub)()
	scraped(t, hub, func(string) bool { return strings.Contains(hub.String(), "the hub serves") })
	line, err := os.ReadFile(filepath.Join(h.dir, "state", "headrace-hub", "join-admin"))
	if err != nil {
		t.Fatal(err)
	}
	h.env["HEADRACE_CLUSTER"] = strings.TrimSpace(string(line))
	first, second := &said{}, &said{}
	defer start("worker -c 8 --metrics-addr 127.0.0.1:0"+oneKeeper, first)()
	scraped(t, first, func(page string) bool { return value(page, "headrace_keeper", "") == 1 })
	defer start("worker -c 8 --keeper never --metrics-addr :0", second)()
	h.write("in.jsonl", questions(items))
	h.must(exit.OK, "submit {}/in.jsonl -o {}/out.jsonl --provider sim --sim-profile fast --seed 7 --wait")

	other := scraped(t, second, func(page string) bool { return value(page, "headrace_worker_jobs", "") >= 0 })
	keeper := scraped(t, first, func(page string) bool {
		other = scraped(t, second, func(string) bool { return true })
		return value(page, "headrace_worker_items_total", "")+value(other, "headrace_worker_items_total", "") == items &&
			balanced(page, `lane="`, value(page, "headrace_worker_calls_total", "")+value(other, "headrace_worker_calls_total", ""), stalled())
	})
	if given, ended := value(keeper, "headrace_keeper_permits_given_total", ""), value(keeper, "headrace_keeper_calls_ended_total", ""); given < ended {
		t.Errorf("%v permits are given, and %v calls ended by them\n%s", given, ended, keeper)
	}
	if value(other, "headrace_keeper", "") != 0 || strings.Contains(other, "headrace_keeper_epoch") || value(keeper, "headrace_keeper_lane_phase", "") != 1 ||
		value(keeper, "headrace_worker_calls_in_flight_max", "") != 8 || !strings.Contains(keeper, "\nheadrace_build_info{") || !strings.Contains(keeper, "\ngo_goroutines ") {
		t.Errorf("%s\n%s", keeper, other)
	}
	if jobs := h.must(0, "jobs ls"); strings.Contains(keeper+other, strings.Fields(strings.Split(jobs, "\n")[1])[0]) {
		t.Errorf("a job is named\n%s\n%s", jobs, keeper)
	}
	page := scraped(t, hub, func(page string) bool { return value(page, "headrace_hub_connections", "processes") == 2 })
	if value(page, "headrace_hub_messages_total", "in") < 20 || value(page, "headrace_hub_bytes_total", "out") == 0 {
		t.Error(page)
	}
}

// A keeper that makes no call itself, since it may not send what is its own to the provider of a job, shows what it gives
// to others, as the worker counts it. When that one has ended, the keeper stands alone and goes on showing the limit.
func TestALoneKeeperShowsItsLimits(t *testing.T) {
	t.Parallel()
	const items = 40
	stalled := race.Late(t, 50*time.Millisecond)
	h := newHere(t)
	h.hub()
	keeper, worker := &said{}, &said{}
	start := func(line string, out *said) (end func() int) {
		signals, over := make(chan os.Signal, 1), make(chan int, 1)
		go func() { over <- h.run(line, out, out, signals) }()
		return func() int { signals <- os.Interrupt; return <-over }
	}
	keeps := start("worker --header X-Ours=1 --metrics-addr 127.0.0.1:0"+oneKeeper, keeper)
	scraped(t, keeper, func(page string) bool { return value(page, "headrace_keeper", "") == 1 })
	works := start("worker -c 8 --keeper never --rpm 60000 --metrics-addr 127.0.0.1:0", worker)
	h.write("in.jsonl", questions(items))
	h.must(exit.OK, "submit {}/in.jsonl -o {}/out.jsonl --provider sim --sim-profile fast --limit-name org --wait")

	other := ""
	page := scraped(t, keeper, func(page string) bool {
		other = scraped(t, worker, func(page string) bool { return value(page, "headrace_worker_items_total", "") == items })
		return balanced(page, `lane="org"`, value(other, "headrace_worker_calls_total", ""), stalled())
	})
	if value(page, "headrace_worker_calls_total", "") != 0 || value(page, "headrace_worker_jobs", "") != 0 || value(other, "headrace_keeper", "") != 0 {
		t.Errorf("the keeper works, or the worker keeps:\n%s\n%s", page, other)
	}
	if value(page, "headrace_keeper_epoch", "") != 1 || value(page, "headrace_keeper_lane_phase", `phase="flowing"`) != 1 || value(page, "headrace_keeper_limit_rate", `limit="requests"`) != 1000 {
		t.Errorf("how the limit stands is not shown:\n%s", page)
	}
	if code := works(); code != 0 {
		t.Errorf("the worker ends with %d\n%s", code, worker)
	}
	page = scraped(t, keeper, func(page string) bool {
		return value(page, "headrace_keeper", "") == 1 && value(page, "headrace_keeper_permits_out", "") == 0 && value(page, "headrace_keeper_jobs", "") == 0
	})
	if !strings.Contains(page, "headrace_keeper_permits_given_total{lane=\"org\"} ") || value(page, "headrace_keeper_calls_throttled_total", "") != 0 {
		t.Errorf("alone it shows\n%s", page)
	}
	if code := keeps(); code != 0 {
		t.Errorf("the keeper ends with %d\n%s", code, keeper)
	}
}

// A process that has said nothing as keeper for some seconds is none.
func TestAKeeperThatIsSilentIsNone(t *testing.T) {
	clock := clockwork.NewFakeClock()
	s := &workerSource{clock: clock}
	kept := s.watch().Kept
	is := func() bool {
		var page exposition.Page
		s.Collect(&page)
		return strings.Contains(string(page.AppendText(nil)), "\nheadrace_keeper 1\n")
	}
	if is() {
		t.Error("it is keeper before it was one")
	}
	kept(bus.Picture{Epoch: 3})
	clock.Advance(keptFor)
	if !is() {
		t.Error("it is none though it said so just now")
	}
	if clock.Advance(time.Millisecond); is() {
		t.Error("it is keeper though it is silent")
	}
}

// The page about metrics lists each of them, with its help, and every address is checked before anything begins.
func TestThePageListsEachMetricOfACluster(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if row := fmt.Sprintf("| `%s` | %s | %s |", f.Name, strings.Join(f.Labels, ", "), f.Help); !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md has no row %s", row)
		}
	}
	h := newHere(t)
	h.must(exit.Usage, "worker --metrics-addr 9500 --join nats://T@h", `--metrics-addr "9500" is invalid: want HOST:PORT`)
	h.must(exit.Usage, "hub --metrics-addr 9500 --store {}/home", `--metrics-addr "9500" is invalid: want HOST:PORT`)
}
