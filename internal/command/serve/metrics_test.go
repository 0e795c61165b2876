package serve

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// The page about metrics lists each of serve's, with its help.
func TestPageListsEachMetric(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../../docs/metrics.md"))(t))
	for _, f := range families {
		if row := fmt.Sprintf("| `%s` | %s | %s |", f.Name, strings.Join(f.Labels, ", "), f.Help); !strings.Contains(page, row) {
			t.Errorf("docs/metrics.md has no row %q", row)
		}
	}
}

// Each request is counted once, by how it ended. Clients after the first 64 are one series.
func TestRequestsAreCounted(t *testing.T) {
	m := newMeter()
	m.status = func(context.Context) (handler.Status, error) {
		return handler.Status{InFlight: 3, Streams: 2, Classes: map[string]int{"batch": 7}}, nil
	}
	for i := range 100 {
		m.note(&handler.Access{Client: fmt.Sprint("c", i), Class: door.Batch, Lane: "l", Status: http.StatusOK, Waited: time.Second, First: 3 * time.Second, Attempts: 1, Cost: limiter.USD(0.25), Priced: i < 2})
	}
	for _, a := range []handler.Access{
		{Code: "headrace_queue_full", Status: http.StatusTooManyRequests},
		{Status: http.StatusBadRequest, Attempts: 1},
		{Gone: true},
		{Gone: true, Attempts: 1, Code: "headrace_upstream"},
	} {
		a.Client, a.Class = "c1", door.Interactive
		m.note(&a)
	}
	var page exposition.Page
	m.Collect(&page)
	text := string(page.AppendText(nil))
	for _, line := range []string{
		`headrace_serve_waiting{class="batch"} 7`, `headrace_serve_waiting{class="normal"} 0`, `headrace_serve_in_flight 3`, `headrace_serve_streams 2`,
		`headrace_serve_requests_total{class="batch",client="c0",lane="l",result="answered"} 1`,
		`headrace_serve_requests_total{class="batch",client="other",lane="l",result="answered"} 36`,
		`headrace_serve_requests_total{class="interactive",client="c1",lane="",result="refused"} 1`,
		`headrace_serve_requests_total{class="interactive",client="c1",lane="",result="failed"} 1`,
		`headrace_serve_requests_total{class="interactive",client="c1",lane="",result="gone"} 2`,
		`headrace_serve_cost_usd_total{client="c0"} 0.25`, `headrace_serve_cost_usd_total{client="c1"} 0.25`,
		`headrace_serve_refused_total{reason="headrace_queue_full"} 1`,
		`headrace_serve_disconnects_total{when="waiting"} 1`, `headrace_serve_disconnects_total{when="flying"} 1`,
		`headrace_serve_wait_seconds_bucket{class="batch",le="0.5"} 0`, `headrace_serve_wait_seconds_bucket{class="batch",le="1"} 100`,
		`headrace_serve_wait_seconds_count{class="batch"} 100`, `headrace_serve_first_byte_seconds_bucket{class="batch",le="2"} 0`,
		`headrace_serve_first_byte_seconds_count{class="batch"} 100`, `headrace_serve_first_byte_seconds_count{class="interactive"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}
