package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/command/settings"
)

// meters is the --metrics-addr of a command that serves until it is stopped.
type meters struct {
	addr string
}

func (m *meters) register(fs *pflag.FlagSet) {
	fs.StringVar(&m.addr, "metrics-addr", "", "serve metrics for Prometheus at this address, as in 127.0.0.1:9500 (without a host, this machine only)")
}

// open serves the figures of a source, and says where. Without the flag it does nothing. The caller closes them.
func (m *meters) open(say notifier, source exposition.Source) (closed func(), err error) {
	if m.addr == "" {
		return func() {}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", exposition.Handler(metrics.Build{}, source))
	s, err := exposition.Listen(m.addr, mux)
	if err != nil {
		return nil, exit.End(exit.Usage, "--metrics-addr: %v: choose another address, or end the program that has it", err)
	}
	say.event(event.Metrics, s.Notice("this process"))
	return func() { _ = s.Close() }, nil // it was read only
}

// check refuses an address that is none.
func (m *meters) check() error {
	if err := settings.CheckMetricsAddr(m.addr); err != nil {
		return exit.EndOf(exit.Usage, err)
	}
	return nil
}

// families lists every metric of the cluster's commands, in the order of the documentation.
var families []*exposition.Family

func family(kind exposition.Kind, name, help string, labels ...string) *exposition.Family {
	f := &exposition.Family{Name: "headrace_" + name, Help: help, Kind: kind, Labels: labels}
	families = append(families, f)
	return f
}

// The metrics. Their names and labels are a promise to dashboards and alerts. A lane is a limit of the cluster, as
// headrace limits shows it. No label names a job: jobs come and go for as long as a process runs.
var (
	workerFlying  = family(exposition.Gauge, "worker_calls_in_flight", "Calls of this worker in flight.")
	workerMost    = family(exposition.Gauge, "worker_calls_in_flight_max", "Calls of this worker that may be in flight.")
	workerItems   = family(exposition.Counter, "worker_items_total", "Items that have ended here, of all jobs.")
	workerCalls   = family(exposition.Counter, "worker_calls_total", "Calls that have left from here.")
	workerRefused = family(exposition.Counter, "worker_calls_throttled_total", "Calls of this worker that were refused for now.")
	workerWaiting = family(exposition.Gauge, "worker_items_waiting", "Items here that wait for another call, of the 32 busiest jobs.")
	workerJobs    = family(exposition.Gauge, "worker_jobs", "Jobs that this worker has made calls for, 32 at most.")
	workerCannot  = family(exposition.Gauge, "worker_jobs_refused", "Jobs that this worker cannot work on, 32 at most.")
	workerReport  = family(exposition.Gauge, "worker_report_timestamp_seconds", "When the figures of this worker were taken, as Unix time: once a second.")

	keeperIs       = family(exposition.Gauge, "keeper", "1 while this process keeps the limits of the cluster, and 0 otherwise.")
	keeperEpoch    = family(exposition.Gauge, "keeper_epoch", "Which keeper of the cluster this process is; absent while it is none.")
	permitsGiven   = family(exposition.Counter, "keeper_permits_given_total", "Permits for a call that this keeper has given.", "lane")
	permitsEnded   = family(exposition.Counter, "keeper_calls_ended_total", "Calls by these permits that have ended.", "lane")
	permitsRefused = family(exposition.Counter, "keeper_calls_throttled_total", "Calls that were refused for now, by permits of an earlier keeper, too.", "lane")
	permitsLost    = family(exposition.Counter, "keeper_permits_vanished_total", "Permits of which no report ever came.", "lane")
	permitsOut     = family(exposition.Gauge, "keeper_permits_out", "Permits that are with workers, or in flight.", "lane")
	permitsWanted  = family(exposition.Gauge, "keeper_permits_wanted", "Permits that workers wait for.", "lane")
	laneJobs       = family(exposition.Gauge, "keeper_jobs", "Jobs under a limit.", "lane")
	laneServers    = family(exposition.Gauge, "keeper_servers", "Servers (headrace serve --join) under a limit.", "lane")
	lanePhase      = family(exposition.Gauge, "keeper_lane_phase", "Which phase a limit is in: 1 for that one, 0 for the others.", "lane", "phase")
	laneRate       = family(exposition.Gauge, "keeper_limit_rate", "What the provider is believed to let through, in units a second.", "lane", "limit", "source")

	hubConnections = family(exposition.Gauge, "hub_connections", "Connections; from is processes or hubs.", "from")
	hubMessages    = family(exposition.Counter, "hub_messages_total", "Messages; direction is in or out.", "direction")
	hubBytes       = family(exposition.Counter, "hub_bytes_total", "Bytes of these messages.", "direction")
	hubSlow        = family(exposition.Counter, "hub_slow_connections_total", "Connections that were closed, since they did not take their messages.")
	hubQueue       = family(exposition.Gauge, "hub_queue_messages", "Messages that the hub keeps: chunks of work, and what the cluster has to know.")
	hubQueueBytes  = family(exposition.Gauge, "hub_queue_bytes", "Bytes of these messages.")
)

// keptFor is for how long a keeper's picture shows that it is keeper: it makes one each second.
const keptFor = 3 * time.Second

// A workerSource shows what a worker reports, and what it knows as keeper.
type workerSource struct {
	clock clockwork.Clock

	mu      sync.Mutex
	worked  bus.WorkerStatus // without its maps
	jobs    int
	waiting int
	refuses int
	kept    bus.Picture
	keptAt  time.Time
}

// watch returns the functions that hear the process's reports.
func (s *workerSource) watch() node.Watch {
	return node.Watch{
		Worked: func(r bus.WorkerStatus) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.jobs, s.refuses, s.waiting = len(r.Jobs), len(r.Refuses), 0
			for _, j := range r.Jobs {
				s.waiting += j.Waiting
			}
			r.Jobs, r.Refuses, r.Limits = nil, nil, nil
			s.worked = r
		},
		Kept: func(p bus.Picture) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kept, s.keptAt = p, s.clock.Now()
		},
	}
}

// Collect shows the latest reports.
func (s *workerSource) Collect(page *exposition.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := &s.worked; !w.At.IsZero() {
		page.Add(workerFlying, float64(w.InFlight))
		page.Add(workerMost, float64(w.Concurrency))
		page.Add(workerItems, float64(w.Done))
		page.Add(workerCalls, float64(w.Calls))
		page.Add(workerRefused, float64(w.Refused))
		page.Add(workerWaiting, float64(s.waiting))
		page.Add(workerJobs, float64(s.jobs))
		page.Add(workerCannot, float64(s.refuses))
		page.Add(workerReport, float64(w.At.UnixMilli())/1000)
	}
	s.keeps(page)
}

// collectKept shows what this process knows as keeper, and whether it is one.
func (s *workerSource) collectKept(page *exposition.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeps(page)
}

func (s *workerSource) keeps(page *exposition.Page) {
	if s.keptAt.IsZero() || s.clock.Now().Sub(s.keptAt) > keptFor {
		page.Add(keeperIs, 0)
		return
	}
	page.Add(keeperIs, 1)
	page.Add(keeperEpoch, float64(s.kept.Epoch))
	for i := range s.kept.Limits {
		collectLimit(page, &s.kept.Limits[i])
	}
}

func collectLimit(page *exposition.Page, l *bus.LimitPicture) {
	page.Add(permitsGiven, float64(l.Given), l.Name)
	page.Add(permitsEnded, float64(l.Ended), l.Name)
	page.Add(permitsRefused, float64(l.Refused), l.Name)
	page.Add(permitsLost, float64(l.Vanished), l.Name)
	out, wanted := 0, 0
	for _, j := range l.Jobs {
		out, wanted = out+j.Out, wanted+j.Wanted
	}
	page.Add(permitsOut, float64(out), l.Name)
	page.Add(permitsWanted, float64(wanted), l.Name)
	jobs, servers := holdersOf(l)
	page.Add(laneJobs, float64(jobs), l.Name)
	page.Add(laneServers, float64(servers), l.Name)
	for phase := machine.Flowing; phase <= machine.Stopped; phase++ {
		in := 0.0
		if l.Phase == phase.String() {
			in = 1
		}
		page.Add(lanePhase, in, l.Name, phase.String())
	}
	for _, k := range l.Known {
		page.Add(laneRate, k.PerSecond, l.Name, k.Limit, k.Source)
	}
}

// A hubSource shows the figures of a hub.
type hubSource struct{ hub *bus.Hub }

// Collect shows them as they are now; a server that does not tell them has none.
func (s hubSource) Collect(page *exposition.Page) {
	c, err := s.hub.Counts()
	if err != nil {
		return
	}
	page.Add(hubConnections, float64(c.Clients), "processes")
	page.Add(hubConnections, float64(c.Routes), "hubs")
	page.Add(hubMessages, float64(c.MessagesIn), "in")
	page.Add(hubMessages, float64(c.MessagesOut), "out")
	page.Add(hubBytes, float64(c.BytesIn), "in")
	page.Add(hubBytes, float64(c.BytesOut), "out")
	page.Add(hubSlow, float64(c.Slow))
	page.Add(hubQueue, float64(c.Queued))
	page.Add(hubQueueBytes, float64(c.QueuedBytes))
}
