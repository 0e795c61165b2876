package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/limiter"
)

// The panel shows who waits, by class and client, and what holds the busiest lane back; a line says the same in short.
func TestPanelShowsWhoWaits(t *testing.T) {
	st := handler.Status{
		Waiting: 1212, InFlight: 3, SpentUSD: 1.5, Classes: map[string]int{"batch": 1200, "interactive": 12},
		Totals: batch.Counters{Settled: 40, Throttled: 2},
		Machine: batch.Status{Lanes: []batch.LaneStatus{
			{Name: "free"}, {Name: "openai/m", Bound: limiter.BoundRequests, Rate: 40, View: limiter.View{Rate: 10}}, {Name: "other", Bound: limiter.BoundTokens},
		}},
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "nightly"} {
		st.Clients = append(st.Clients, handler.ClientStatus{Name: name, Waiting: 2})
	}
	st.Clients[6].Waiting, st.Clients[6].InFlight = 1200, 3
	want := `Waiting   1,212 (12 interactive, 1,200 batch)
Calls     3 in flight, 40 ended, 2 refused by the provider
Spent     $1.50
Held by   requests of openai/m: about 600 calls a minute
Clients   nightly: 1,200 waiting, 3 in flight
          a: 2 waiting, 0 in flight
          b: 2 waiting, 0 in flight
          c: 2 waiting, 0 in flight
          and 3 more clients`
	if got := strings.Join(rowsOf(&st), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	st.Machine.Lanes[1].Wait = 18 * time.Second
	if got := lineOf(&st); got != "headrace: 1,212 waiting (12 interactive, 1,200 batch), 3 in flight, 40 ended; held by requests of openai/m, for 18.0 s" {
		t.Error(got)
	}
	if got := lineOf(&handler.Status{Machine: st.Machine}); got != "headrace: 0 waiting, 0 in flight, 0 ended" {
		t.Error(got)
	}
}
