package metrics

import (
	"encoding/json"
	"net/http"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
)

// Paths are further things that a server shows.
type Paths interface{ Register(mux *http.ServeMux) }

// Listen opens the address, HOST:PORT, and begins to serve /metrics, /status and a page. run has the metrics. stands
// returns how the run stands, nil before it has begun; any goroutine may call it.
func Listen(addr string, page Paths, stands func() *event.Progress, run ...exposition.Source) (*exposition.Server, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", exposition.Handler(run...))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answerStatus(w, r, stands) })
	page.Register(mux)
	return exposition.Listen(addr, mux)
}

// answerStatus sends one progress event. Examples of failures quote prompts and answers, so
// they are for this machine only.
func answerStatus(w http.ResponseWriter, r *http.Request, stands func() *event.Progress) {
	e := stands()
	if e == nil {
		http.Error(w, "headrace: the run has not begun", http.StatusServiceUnavailable)
		return
	}
	if !exposition.IsFromHere(r) {
		e.Failures = nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e) // a reader that has gone is nobody's fault
}
