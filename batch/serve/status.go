package serve

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/provider"
)

// Status is a snapshot of the server.
type Status struct {
	Waiting  int            `json:"waiting"`
	InFlight int            `json:"in_flight"`
	Streams  int            `json:"streams"` // of those in flight
	Bodies   int64          `json:"bodies_bytes"`
	Stopping bool           `json:"stopping"`
	Classes  map[string]int `json:"waiting_by_class"`
	Clients  []ClientStatus `json:"clients"` // those with requests, by name
	Lanes    []LaneStatus   `json:"lanes"`   // the busiest
	SpentUSD float64        `json:"spent_usd"`
	Reserved float64        `json:"reserved_usd"`
	Totals   batch.Counters `json:"-"`
	Machine  batch.Status   `json:"-"`
}

// ClientStatus is a snapshot of one client.
type ClientStatus struct {
	Name     string `json:"name"`
	Waiting  int    `json:"waiting"`
	InFlight int    `json:"in_flight"`

	SpentUSD float64 `json:"spent_usd,omitempty"` // since the server began
}

// LaneStatus is a snapshot of one lane.
type LaneStatus struct {
	Name     string `json:"name"`
	Phase    string `json:"phase"`
	HeldBy   string `json:"held_by,omitempty"`
	WaitMs   int64  `json:"wait_ms"`
	InFlight int    `json:"in_flight"`
	Calls    uint64 `json:"calls"`
	Refused  uint64 `json:"refused"`
}

// Waiting returns the number of requests that wait.
func (s *Server) Waiting() (n int) {
	s.withBooks(func(b *books) { n = b.waiting })
	return n
}

// Admin reports whether a request may see the status: it has the token of an admin, or came over the user's own
// socket. Where the server is open and has no clients, it needs no token. A request that is foreign, as a page's is,
// never may.
func (s *Server) Admin(r *http.Request) (is bool) {
	if isLocal(r.Context()) {
		return true
	}
	s.withBooks(func(b *books) {
		client, refusal := b.door.Client(r.Header)
		is = refusal == nil && client.Admin && b.door.Foreign(r, false) == nil
	})
	return is
}

// statusLanes is the number of lanes that a status shows.
const statusLanes = 32

// Status returns a snapshot. The error is ctx's, or that of a closed Shared.
func (s *Server) Status(ctx context.Context) (Status, error) {
	status := Status{Classes: map[string]int{}, Clients: []ClientStatus{}, Lanes: []LaneStatus{}}
	s.withBooks(func(b *books) {
		status.SpentUSD, status.Reserved = b.total.spent.USD(), b.total.reserved.USD()
		status.Bodies, status.Waiting, status.Streams, status.Stopping = b.bodies, b.waiting, b.streams, b.closing
		for _, name := range slices.Sorted(maps.Keys(b.clients)) {
			c := b.clients[name]
			status.InFlight += c.inFlight
			client := ClientStatus{Name: name, Waiting: c.waitingInAll(), InFlight: c.inFlight}
			if p := b.purses[name]; p != nil {
				client.SpentUSD = p.spent.USD()
			}
			status.Clients = append(status.Clients, client)
			for class, n := range c.waiting {
				status.Classes[door.Classes[class]] += n
			}
		}
	})
	m, err := s.cfg.Shared.Status(ctx, statusLanes)
	if err != nil {
		return status, err
	}
	status.Machine, status.Totals = m, m.Totals
	for _, l := range m.Lanes {
		status.Lanes = append(status.Lanes, LaneStatus{
			Name: l.Name, Phase: l.Phase.String(), HeldBy: l.Why, WaitMs: l.Wait.Milliseconds(), InFlight: l.InFlight,
			Calls: l.Counters.Calls, Refused: l.Counters.Throttled,
		})
	}
	return status, nil
}

// serveStatus shows the status to an admin, and to clients over the user's own socket.
func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request, face provider.Face) {
	if !s.Admin(r) {
		writeRefusal(w, face, beforeLine(&provider.Refusal{Status: http.StatusUnauthorized, Code: "headrace_token", Message: "the status needs the admin's token"}))
		return
	}
	st, err := s.Status(r.Context())
	if err != nil {
		writeRefusal(w, face, refused{Refusal: *stopping()})
		return
	}
	body, err := json.Marshal(st)
	if err != nil {
		writeRefusal(w, face, refused{Refusal: provider.Refusal{Status: http.StatusInternalServerError, Code: "headrace_status", Message: err.Error()}})
		return
	}
	s.writePage(w, r, http.StatusOK, string(body))
}
