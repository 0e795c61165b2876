package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A Holder says how a process holds permits for calls that are no job's.
type Holder struct {
	Shared *batch.Shared // its lanes are those that [Holding.Lane] gives a law
	// Weight is its share of each limit, relative to those of jobs and of other holders.
	Weight      float64
	Keeper      keeping.Candidacy  // "" is keeping.PrefersKeep
	Concurrency int                // calls that may be in flight, for people
	Serves      func() bus.Serving // what it tells others of itself, once a second
	Watch       Watch              // hears what this process reports
}

const (
	// MostHeld bounds the limits under which a holder calls. A client of a server may name any number of models, and a
	// keeper has room for 4,096 limits of all.
	MostHeld = 256
	// heldIdle is the time after which a holder forgets a limit that nobody uses. Models of a nightly job come and go
	// by then. Where there is no room for another limit, [forgetAfter] is enough.
	heldIdle = time.Hour
)

// ErrHeld says that a holder has no room for one more limit.
var ErrHeld = fmt.Errorf("node: calls under more than %d limits", MostHeld)

// holderMark begins what stands for the name of a job where a holder's calls are meant. No job's name has a slash.
const holderMark = "serve/"

// IsServer reports whether what stands in a picture for a job is a server that calls for clients of its own.
func IsServer(job string) bool { return strings.HasPrefix(job, holderMark) }

// A Holding is a process that calls under the limits of the cluster for clients of its own. Any goroutine may call
// its methods.
type Holding struct {
	node       *Node
	config     Holder
	job        string // stands for that of a job
	link       *link
	limitAdded chan struct{} // has room for the news of one limit more

	mu       sync.Mutex
	held     map[string]*heldLimit // by limit
	keeper   string                // the latest that was heard
	epoch    uint64
	heard    time.Time // when it was; zero: none was
	pictures map[string]bus.LimitPicture
}

// A heldLimit is a limit under which a holder calls.
type heldLimit struct {
	law   *permit.Law
	lane  string             // "": another limit has taken its place there
	known machine.LaneConfig // as the user knows it
	used  time.Time          // when a call was last seen there, or one was about to come
}

// Hold begins to hold permits. The caller defines lanes by [Holding.Lane], and calls [Holding.Run] once.
func (n *Node) Hold(how Holder) (*Holding, error) {
	h := &Holding{
		node: n, config: how, job: holderMark + n.Name(), held: map[string]*heldLimit{},
		pictures: map[string]bus.LimitPicture{}, limitAdded: make(chan struct{}, 1),
	}
	var err error
	h.link, err = newLink(n, heldLanes{h}, n.newRefusals())
	return h, err
}

// Lane puts a lane under a limit of the cluster, and returns own, its settings, with the law that asks the keeper for
// permits. known is what the user knows of the limit: the keeper uses it unless it knows more. Call Lane again when the
// lane's settings change, and when [Holding.Uses] says that its limit was forgotten. The error is [ErrHeld].
func (h *Holding) Lane(lane, limit string, known, own machine.LaneConfig) (machine.LaneConfig, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.held[limit]
	if l == nil {
		if len(h.held) >= MostHeld && !h.forgetOldest() {
			return own, ErrHeld
		}
		l = &heldLimit{law: permit.NewWeighed(h.node.Name(), h.job, limit, h.config.Weight)}
		h.held[limit] = l
	}
	for _, other := range h.held { // with another key a lane comes under another limit
		if other.lane == lane {
			other.lane = ""
		}
	}
	known.Maker = nil
	l.lane, l.known, l.used = lane, known, h.node.clock.Now()
	h.link.known.add(laneName(limit, h.job))
	own.Maker = l.law
	select {
	case h.limitAdded <- struct{}{}: // the keeper gives no permits before it knows of the limit
	default:
	}
	return own, nil
}

// Uses records that a call waits for a lane, or is about to. It reports whether the holder still knows the lane's limit.
func (h *Holding) Uses(lane string) (known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.held {
		if l.lane == lane {
			l.used, known = h.node.clock.Now(), true
		}
	}
	return known
}

// forgetIdle forgets the limits that nobody has used for heldIdle. lanes are the busiest of the Shared: a limit is in use
// while calls of its lane are under way, or items wait for it.
func (h *Holding) forgetIdle(lanes []batch.LaneStatus) {
	busy := map[string]bool{}
	for i := range lanes {
		l := &lanes[i]
		busy[l.Name] = l.InFlight+l.Parked+l.Delayed > 0 || l.Draw != limiter.Cost{} // a zero Draw: no item waits for the lane
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.node.clock.Now()
	for limit, l := range h.held {
		if busy[l.lane] {
			l.used = now
		}
		if now.Sub(l.used) >= heldIdle {
			h.forget(limit)
		}
	}
}

// forgetOldest forgets the limit that has been unused for longest, if that is at least forgetAfter, and reports whether
// it did. At least one is held. Its caller holds mu.
func (h *Holding) forgetOldest() bool {
	oldest := ""
	for limit, l := range h.held {
		if o := h.held[oldest]; o == nil || l.used.Before(o.used) {
			oldest = limit
		}
	}
	if h.node.clock.Since(h.held[oldest].used) < forgetAfter {
		return false
	}
	h.forget(oldest)
	return true
}

// forget forgets a limit. Its caller holds mu.
func (h *Holding) forget(limit string) {
	delete(h.held, limit)
	delete(h.pictures, limit)
	h.link.known.remove(laneName(limit, h.job))
}

// laneUnder returns the lane that is under a limit; "": there is none. Its caller holds mu.
func (h *Holding) laneUnder(limit string) string {
	if l := h.held[limit]; l != nil {
		return l.lane
	}
	return ""
}

// heldLanes is the laneMessenger of a Holding.
type heldLanes struct{ h *Holding }

// Tell passes a word for a lane of the keeper, named by laneName, to the holder's own lane under that limit. A limit without a
// lane, as one that is forgotten, hears nothing.
func (l heldLanes) Tell(_ context.Context, keeperLane string, word any) error {
	limit, _ := splitLane(keeperLane)
	l.h.mu.Lock()
	lane := l.h.laneUnder(limit)
	l.h.mu.Unlock()
	if lane == "" {
		return nil
	}
	return l.h.config.Shared.Tell(lane, word)
}

// Words returns what the lanes' laws say.
func (l heldLanes) Words(context.Context) (<-chan []batch.Word, error) {
	return l.h.config.Shared.Words(), nil
}

// Run holds permits until ctx ends, and meanwhile is a candidate for keeper unless it never keeps. Its error is
// [ErrOtherStore] once the store names another hub, or that of a bus whose connection has ended for good.
func (h *Holding) Run(ctx context.Context) error {
	defer h.link.close()
	n := h.node
	if err := n.ensure(ctx, n.bus.Ensure); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	pictures, err := bus.Listen[bus.Picture](n.bus, bus.Keeper, "", picturesKept)
	if err != nil {
		return err
	}
	defer pictures.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	keepOrWatch := n.watchHub
	if h.config.Keeper != keeping.NeverKeeps {
		keepOrWatch = keeping.New(n.keepingConfig(&Worker{Keeper: h.config.Keeper, Watch: h.config.Watch})).Run
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { h.link.run(ctx) })
	parts.Go(func() { h.sayStatus(ctx) })
	parts.Go(func() { h.hearKeepers(ctx, pictures) })
	err = keepOrWatch(ctx)
	stop()
	return err
}

// paceValidFor bounds the time for which the pace of a keeper's picture counts. The keeper makes a picture each second.
const paceValidFor = 3 * time.Second

// hearKeepers listens to the keepers' pictures. It tells the lanes how fast their calls may leave, and tells people when
// the keeper's version differs.
func (h *Holding) hearKeepers(ctx context.Context, pictures *bus.Feed[bus.Message[bus.Picture]]) {
	version := &keeperVersion{Node: h.node}
	for {
		select {
		case <-ctx.Done():
			return
		case m, open := <-pictures.C:
			if !open {
				return
			}
			differed := version.differs()
			version.hear(ctx, m)
			if version.differs() != differed {
				h.sayVersion(version)
			}
			if h.notePicture(ctx, &m) {
				h.tellPace(ctx, m.Body.Limits)
			}
		}
	}
}

// sayVersion tells people that the keeper's version differs, or no longer does.
func (h *Holding) sayVersion(v *keeperVersion) {
	if v.differs() {
		h.node.sayf("the keeper of the limits is another version of headrace (its messages are of version %d, this server's of %d): requests wait until it is this one", v.version, permit.Version)
		return
	}
	h.node.sayf("the keeper of the limits is this version of headrace again: requests go on")
}

// notePicture stores a picture of the limits if the present keeper sent it. It reports whether it did.
func (h *Holding) notePicture(ctx context.Context, m *bus.Message[bus.Picture]) bool {
	if !h.node.epochs.Believes(ctx, m.Body.Epoch) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.Body.Epoch < h.epoch {
		return false
	}
	h.keeper, h.epoch, h.heard = m.About, m.Body.Epoch, h.node.clock.Now()
	clear(h.pictures)
	for _, l := range m.Body.Limits {
		if h.laneUnder(l.Name) != "" {
			h.pictures[l.Name] = l
		}
	}
	return true
}

// tellPace tells the lane of each limit how fast its calls are likely to leave.
func (h *Holding) tellPace(ctx context.Context, limits []bus.LimitPicture) {
	now := h.node.clock.Now()
	for i := range limits {
		_ = heldLanes{h}.Tell(ctx, laneName(limits[i].Name, h.job), h.paceWord(&limits[i], now)) // it fails only without a Shared
	}
}

// paceWord turns the picture of a limit into a message to its lane here. The message has this holder's share of the
// pace, and the time until which the limit rests.
func (h *Holding) paceWord(l *bus.LimitPicture, now time.Time) *permit.Pace {
	p := &permit.Pace{
		PerSecond: h.share(l), Searched: len(l.Known) == 0, // nothing known: the keeper still searches
		By: limiter.ParseBound(l.Bound), Good: now.Add(paceValidFor),
	}
	switch p.By {
	case limiter.BoundCooldown, limiter.BoundOverload, limiter.BoundBreaker: // any other wait is only for the next call's turn
		if l.WaitS > 0 {
			p.Hold = now.Add(time.Duration(l.WaitS * float64(time.Second)))
		}
	}
	return p
}

// share returns the calls a second that this holder may make at most. It shares the limit's pace by weight with the jobs
// and holders that want permits now. 0: nothing bounds the calls, the bound is not known, or none may leave now.
func (h *Holding) share(l *bus.LimitPicture) float64 {
	if l.Pace == nil {
		return 0
	}
	weights := h.config.Weight
	for _, j := range l.Jobs {
		if j.Job != h.job && j.Wanted > 0 {
			weights += j.Weight
		}
	}
	return *l.Pace * h.config.Weight / weights
}

// sayStatus reports once a second what this process does, and what is known of its limits.
func (h *Holding) sayStatus(ctx context.Context) {
	ticker := h.node.clock.NewTicker(statusEvery)
	defer ticker.Stop()
	report, began := bus.WorkerStatus{Concurrency: h.config.Concurrency}, h.node.clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.limitAdded:
		case <-ticker.Chan():
		}
		status, err := h.config.Shared.Status(ctx, MostHeld)
		if err != nil {
			return // ctx has ended, or the Shared is closed
		}
		h.forgetIdle(status.Lanes)
		totals := status.Totals
		report.At, report.UpS = h.node.clock.Now().UTC(), h.node.clock.Since(began).Seconds()
		report.InFlight, report.Done, report.Calls, report.Refused = int(totals.Calls-totals.Settled-totals.HandedOver), totals.Settled+totals.FailedLater, totals.Calls, totals.Throttled
		serves := h.config.Serves()
		serves.Weight = h.config.Weight
		report.Serves = &serves
		report.Limits = h.limits()
		_ = h.node.bus.Say(bus.Status, h.node.Name(), report)
		if h.config.Watch.Worked != nil {
			h.config.Watch.Worked(report)
		}
	}
}

// limits returns what is known of the limits.
func (h *Holding) limits() map[string]machine.LaneConfig {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]machine.LaneConfig{}
	for limit, l := range h.held {
		all[limit] = l.known
	}
	return all
}

// Held is a snapshot of a Holding.
type Held struct {
	Name      string      `json:"name"` // of this process in the cluster
	Hub       string      `json:"hub"`
	Connected bool        `json:"connected"`
	Keeper    string      `json:"keeper"` // "": none was heard in the last seconds
	Epoch     uint64      `json:"epoch"`  // of the keeper
	Weight    float64     `json:"weight"`
	Limits    []HeldLimit `json:"limits"` // by name
}

// A HeldLimit is a limit under which a Holding calls.
type HeldLimit struct {
	Name    string  `json:"name"`
	Lane    string  `json:"lane"`
	Phase   string  `json:"phase,omitempty"`      // "": the keeper has not told
	HeldBy  string  `json:"held_by,omitempty"`    // as headrace limits ls shows it
	Share   float64 `json:"share_per_second"`     // calls that may leave here if others want theirs; 0: nothing bounds them, or nobody knows
	Others  int     `json:"others"`               // jobs, and servers, that call under it, too
	Stopped string  `json:"stopped,omitempty"`    // why
	Pace    float64 `json:"per_second,omitempty"` // calls that may leave from everywhere
}

// Held returns a snapshot.
func (h *Holding) Held() Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Held{Name: h.node.Name(), Hub: h.node.bus.Identity(), Connected: h.node.bus.Connected(), Weight: h.config.Weight, Limits: []HeldLimit{}}
	heardLately := !h.heard.IsZero() && h.node.clock.Since(h.heard) < paceValidFor
	if heardLately {
		s.Keeper, s.Epoch = h.keeper, h.epoch
	}
	for _, name := range slices.Sorted(maps.Keys(h.held)) {
		l := HeldLimit{Name: name, Lane: h.held[name].lane}
		if l.Lane == "" {
			continue
		}
		if picture, known := h.pictures[name]; known && heardLately {
			l.Phase, l.HeldBy, l.Stopped, l.Share = picture.Phase, picture.Bound, picture.Stopped, h.share(&picture)
			if picture.Pace != nil {
				l.Pace = *picture.Pace
			}
			for _, j := range picture.Jobs {
				if j.Job != h.job {
					l.Others++
				}
			}
		}
		s.Limits = append(s.Limits, l)
	}
	return s
}
