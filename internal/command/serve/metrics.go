package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"

	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/limiter"
)

// The metrics of serve. Their names and labels are a promise to dashboards and alerts.
var (
	requestsTotal = newFamily(exposition.Counter, "requests_total", "Requests that have ended; result is answered, refused (by this server), failed (by the provider) or gone.", "client", "class", "lane", "result")
	waitingNow    = newFamily(exposition.Gauge, "waiting", "Requests that wait.", "class")
	inFlightNow   = newFamily(exposition.Gauge, "in_flight", "Calls in flight.")
	waitSeconds   = newFamily(exposition.Histogram, "wait_seconds", "Time of requests until their last call left, or until they ended.", "class")
	firstSeconds  = newFamily(exposition.Histogram, "first_byte_seconds", "Time of answered requests until the first byte of their answer.", "class")
	streamsNow    = newFamily(exposition.Gauge, "streams", "Streams that are open, of the calls in flight.")
	refusedTotal  = newFamily(exposition.Counter, "refused_total", "Requests that this server has refused, by their code.", "reason")
	goneTotal     = newFamily(exposition.Counter, "disconnects_total", "Clients that went away before the end of their answer; when is waiting or flying.", "when")
	costTotal     = newFamily(exposition.Counter, "cost_usd_total", "Cost of requests that have ended, of models with a known price, in USD.", "client")
)

// families lists them in the order of the documentation.
var families []*exposition.Family

func newFamily(kind exposition.Kind, name, help string, labels ...string) *exposition.Family {
	f := &exposition.Family{Name: "headrace_serve_" + name, Help: help, Kind: kind, Labels: labels}
	families = append(families, f)
	return f
}

// Bounds of labels: a client may give any number of names.
const (
	mostLabels  = 64
	othersLabel = "other"
)

// waitEnds are the ends of the buckets of waits, in seconds: as long as a call takes, to the longest
// patience of an SDK.
var waitEnds = []float64{0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 60, 120, 240, 600}

// meter counts requests. Connections note them, and scrapes read them.
type meter struct {
	status func(context.Context) (handler.Status, error)

	mu       sync.Mutex // guards what follows
	requests map[[4]string]float64
	refused  map[string]float64
	gone     map[string]float64
	cost     map[string]limiter.Money      // by client
	waits    map[string]*exposition.Spread // by class
	firsts   map[string]*exposition.Spread // likewise
	clients  []string                      // those with a name of their own in labels
	lanes    []string
}

func newMeter() *meter {
	m := &meter{requests: map[[4]string]float64{}, refused: map[string]float64{}, gone: map[string]float64{}, cost: map[string]limiter.Money{}, waits: map[string]*exposition.Spread{}, firsts: map[string]*exposition.Spread{}}
	for _, class := range door.Classes {
		m.waits[class] = &exposition.Spread{Ends: waitEnds, Counts: make([]uint64, len(waitEnds)+1)}
		m.firsts[class] = &exposition.Spread{Ends: waitEnds, Counts: make([]uint64, len(waitEnds)+1)}
	}
	return m
}

// note counts a request that has ended.
func (m *meter) note(a *handler.Access) {
	m.mu.Lock()
	defer m.mu.Unlock()
	result := "answered"
	switch {
	case a.Gone:
		result = "gone"
		when := "flying"
		if a.Attempts == 0 {
			when = "waiting"
		}
		m.gone[when]++
	case a.Code != "":
		result = "refused"
		m.refused[a.Code]++
	case a.Status >= http.StatusBadRequest:
		result = "failed"
	}
	class := a.Class.String()
	client := labelFor(&m.clients, a.Client)
	if a.Priced {
		m.cost[client] = m.cost[client].Plus(a.Cost)
	}
	m.requests[[4]string{client, class, labelFor(&m.lanes, a.Lane), result}]++
	m.waits[class].Add(a.Waited.Seconds())
	if a.First > 0 {
		m.firsts[class].Add(a.First.Seconds())
	}
}

// labelFor returns the label of a name. When there are too many names, a new one gets the label that all others
// share.
func labelFor(known *[]string, name string) string {
	if slices.Contains(*known, name) {
		return name
	}
	if len(*known) >= mostLabels {
		return othersLabel
	}
	*known = append(*known, name)
	return name
}

// Collect adds what was counted to a page of metrics, and how the server stands now.
func (m *meter) Collect(to *exposition.Page) {
	if st, err := m.status(context.Background()); err == nil { // it waits for one pass of the coordinator at most
		for _, class := range door.Classes {
			to.Add(waitingNow, float64(st.Classes[class]), class)
		}
		to.Add(inFlightNow, float64(st.InFlight))
		to.Add(streamsNow, float64(st.Streams))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for of, n := range m.requests {
		to.Add(requestsTotal, n, of[:]...)
	}
	for reason, n := range m.refused {
		to.Add(refusedTotal, n, reason)
	}
	for client, cost := range m.cost {
		to.Add(costTotal, cost.USD(), client)
	}
	for when, n := range m.gone {
		to.Add(goneTotal, n, when)
	}
	for _, class := range door.Classes {
		to.AddSpread(waitSeconds, copyOf(m.waits[class]), class)
		to.AddSpread(firstSeconds, copyOf(m.firsts[class]), class)
	}
}

// copyOf returns a spread as it stands: the page is written later.
func copyOf(s *exposition.Spread) *exposition.Spread {
	now := *s
	now.Counts = slices.Clone(now.Counts)
	return &now
}

// paths serves /metrics to admins, and everything else as before.
func (s *server) paths() http.Handler {
	member := clusterView{s}
	scrape := exposition.Handler(metrics.Build{}, s.meter, member)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if member.serveStatus(w, r) {
			return
		}
		if r.URL.Path != "/metrics" {
			s.handler.ServeHTTP(w, r)
			return
		}
		if r.ContentLength != 0 { // nobody reads a body here, and net/http does so before it answers
			_ = http.NewResponseController(w).SetReadDeadline(s.Clock.Now().Add(headerWait))
		}
		switch {
		case r.Method != http.MethodGet:
			http.Error(w, "headrace: /metrics takes GET", http.StatusMethodNotAllowed)
		case !s.handler.Admin(r):
			http.Error(w, "headrace: /metrics needs the token of an admin", http.StatusUnauthorized)
		default:
			scrape.ServeHTTP(w, r)
		}
	})
}
