package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/command/serve"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
)

// serveFlags are the flags by which headrace serve joins a cluster: those of worker, and its weight.
type serveFlags struct {
	joinFlags
	w      *world.World
	keeper string
	weight float64
	limit  string
}

// newServe returns what lets headrace serve share the limits of a cluster. Like a worker, the server founds the
// cluster and settles its times if nobody has done so before.
func newServe(w *world.World) serve.Cluster {
	return &serveFlags{w: w, joinFlags: joinFlags{patient: true, works: true, founds: true}}
}

// Register is part of [serve.Cluster].
func (f *serveFlags) Register(fs *pflag.FlagSet) {
	f.joinFlags.register(fs, "join")
	fs.Lookup("join").Usage = "keep the limits of a cluster, with its jobs and other servers: the line to join by, as headrace hub prints it ('': that in HEADRACE_CLUSTER)"
	f.registerTimes(fs)
	for _, name := range []string{"store", "ack-wait", "lease"} {
		flag := fs.Lookup(name)
		flag.Usage = "with --join: " + flag.Usage
	}
	fs.StringVar(&f.keeper, "keeper", string(keeping.MayKeep), "with --join: whether the limits may be kept here: may, never or prefer")
	fs.Float64Var(&f.weight, "weight", 1, "with --join: share of each limit, relative to jobs and other servers")
	fs.StringVar(&f.limit, "limit-name", "", "with --join: limit that all calls are under, as jobs with that --limit-name (default: one for each provider, address, model and account, as for jobs)")
	settings.NameValues(fs, map[string]string{"limit-name": "NAME", "join": "LINE", "store": "PLACE", "ack-wait": "D", "lease": "D", "keeper": "WHETHER", "weight": "N"})
}

// needJoin lists the flags that mean nothing without --join.
var needJoin = []string{"store", "ack-wait", "lease", "keeper", "weight", "limit-name"}

// Check is part of [serve.Cluster].
func (f *serveFlags) Check(fs *pflag.FlagSet, lanes bool) error {
	if !fs.Changed("join") {
		for _, name := range needJoin {
			if fs.Changed(name) {
				return exit.End(exit.Usage, "--%s: only with --join: add --join, or remove --%s", name, name)
			}
		}
		return nil
	}
	if _, err := keeping.ParseCandidacy(f.keeper); err != nil {
		return exit.End(exit.Usage, "--keeper: %v", err)
	}
	if !(f.weight > 0) || math.IsInf(f.weight, 1) { // NaN is not over 0 either
		return exit.End(exit.Usage, "--weight %v: it must be a number more than 0", f.weight)
	}
	if lanes && f.limit != "" {
		return exit.End(exit.Usage, "--limit-name names the limit of one provider, and lanes have limits of their own: remove it, or set quota in the lanes")
	}
	return f.checkTimes()
}

// Limit is part of [serve.Cluster].
func (f *serveFlags) Limit() string { return f.limit }

// serveVoice passes on what a node says, without telling errors and events apart.
type serveVoice func(string)

func (v serveVoice) line(text string)                { v(text) }
func (v serveVoice) error(err error)                 { v(err.Error()) }
func (v serveVoice) event(_ event.Code, text string) { v(text) }

// Join is part of [serve.Cluster].
func (f *serveFlags) Join(ctx context.Context, s serve.Joining) (serve.Member, error) {
	candidacy, err := keeping.ParseCandidacy(f.keeper)
	if err != nil {
		return nil, err
	}
	n, err := f.join(ctx, f.w, serveVoice(s.Say))
	if err != nil {
		return nil, err
	}
	m := &member{node: n, source: &workerSource{clock: f.w.Clock}}
	m.Holding, err = n.Hold(node.Holder{
		Shared: s.Shared, Weight: f.weight, Keeper: candidacy, Concurrency: s.Concurrency, Watch: node.Watch{Kept: m.source.watch().Kept},
		Serves: func() bus.Serving {
			at, waiting := s.Stands()
			return bus.Serving{At: at, Waiting: waiting}
		},
	})
	if err != nil {
		_ = n.Close() // the connection has ended
		return nil, exit.EndOf(exit.Usage, err)
	}
	return m, nil
}

// member is a server that is part of a cluster.
type member struct {
	*node.Holding
	node   *node.Node
	source *workerSource
}

// Lane is part of [serve.Member]. The keeper sees to the window and the account of a limit for all, so the lane here
// has neither.
func (m *member) Lane(lane, limit string, c batch.LaneConfig) (batch.LaneConfig, error) {
	own := c
	own.Window, own.Account = 0, ""
	return m.Holding.Lane(lane, limit, limitOf(c), own)
}

// Close leaves the cluster.
func (m *member) Close() error { return m.node.Close() }

// The metrics of a server in a cluster, besides those of a keeper.
var (
	memberConnected = family(exposition.Gauge, "serve_cluster_connected", "1 while this server reaches the hub of its cluster, and 0 otherwise; name is that of the process there.", "hub", "name")
	memberKeeper    = family(exposition.Gauge, "serve_cluster_keeper", "1 while this server hears a keeper of the cluster's limits, and 0 otherwise.")
	memberShare     = family(exposition.Gauge, "serve_cluster_share", "Calls a second of this server that a limit lets through if the others want theirs; absent where nothing bounds them.", "lane", "limit")
)

// Collect is part of [serve.Member].
func (m *member) Collect(page *exposition.Page) {
	is := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	h := m.Held()
	page.Add(memberConnected, is(h.Connected), h.Hub, h.Name)
	page.Add(memberKeeper, is(h.Keeper != ""))
	for _, l := range h.Limits {
		if l.Share > 0 {
			page.Add(memberShare, l.Share, l.Lane, l.Name)
		}
	}
	m.source.collectKept(page)
}

// memberLimits is the number of limits that a panel names.
const memberLimits = 2

// Standing is part of [serve.Member].
func (m *member) Standing() (forPrograms any, rows []string) {
	h := m.Held()
	row := "Cluster   hub " + h.Hub
	switch {
	case !h.Connected:
		row += " is away: requests wait until it is back"
	case h.Keeper == "":
		row += ": no keeper of the limits is heard; one takes over within seconds"
	default:
		row += fmt.Sprintf(", keeper %s (number %d)", shortName(h.Keeper), h.Epoch)
	}
	rows = append(rows, row)
	for i, l := range h.Limits {
		switch {
		case l.Share == 0:
			continue
		case i >= memberLimits:
			return h, append(rows, fmt.Sprintf("          and %d more limits", len(h.Limits)-i))
		}
		rows = append(rows, fmt.Sprintf("          %s: %s of %s calls a minute here, %s besides",
			l.Name, words.Thousands(math.Round(time.Minute.Seconds()*l.Share)), words.Thousands(math.Round(time.Minute.Seconds()*l.Pace)), words.Count(l.Others, "other")))
	}
	return h, rows
}
