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
// returns how the run stands, without the provider's words if it is to be bare, and nil before it has begun; any
// goroutine may call it.
func Listen(addr string, page Paths, stands func(bare bool) *event.Progress, run ...exposition.Source) (*exposition.Server, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", exposition.Handler(run...))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answerStatus(w, r, stands) })
	page.Register(mux)
	return exposition.Listen(addr, mux)
}

// answerStatus sends one progress event. Clients on other machines get no failures and no words of the provider, as
// these quote prompts and answers.
func answerStatus(w http.ResponseWriter, r *http.Request, stands func(bare bool) *event.Progress) {
	bare := !exposition.IsFromHere(r)
	e := stands(bare)
	if e == nil {
		http.Error(w, "headrace: the run has not begun", http.StatusServiceUnavailable)
		return
	}
	if bare {
		e.Failures = nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e) // a reader that has gone is nobody's fault
}
