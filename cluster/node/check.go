package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/store"
)

// A Verdict is a check's judgement of one thing.
type Verdict string

// The verdicts.
const (
	Safe   Verdict = "safe"
	Note   Verdict = "note"   // costs time, or is good to know
	Unsafe Verdict = "unsafe" // must be put right
)

// A Checked is one thing that a check looked at.
type Checked struct {
	Part    string  `json:"part"` // bus, times, store or workers
	Verdict Verdict `json:"verdict"`
	What    string  `json:"what"`
	Why     string  `json:"why"` // the consequence, or the remedy; may be ""
}

// reachWait bounds the time for a bus to let a check in. A worker tries for ever, but a check must answer.
const reachWait = 5 * time.Second

// Check tries bus and store from where this process is, and returns its findings. It reports on both, whatever is wrong
// with one.
func Check(ctx context.Context, cfg Config, chance *rand.Rand, probe store.ProbeConfig) []Checked {
	if cfg.Clock == nil {
		cfg.Clock = clockwork.NewRealClock()
	}
	line, home, err := SplitHome(cfg.Line)
	if err != nil {
		return []Checked{{"bus", Unsafe, err.Error(), "take the whole line that headrace hub prints"}}
	}
	var found []Checked
	cfg.Line, cfg.Home = line, cmp.Or(cfg.Home, home)
	cfg.Patient = false // a check must answer
	s, err := openHome(ctx, cfg.Home, &cfg)
	if err == nil {
		defer func() { _ = store.Close(s) }() // the findings are complete
		var times Checked
		if cfg.Times, times = checkTimes(ctx, s, cfg.Times); times.Part != "" {
			found = append(found, times)
		}
	} else {
		found = append(found, Checked{"store", Unsafe, err.Error(), "without its store a cluster has nothing: check its name, and that this machine may use it"})
	}
	found = append(checkBus(ctx, cfg, s), found...)
	if err == nil && !slices.ContainsFunc(found, isMismatch) {
		found = append(found, checkStore(ctx, s, cfg.Home, chance, probe))
	}
	return found
}

// isMismatch reports whether a finding says that the store is not the cluster's; a check then writes nothing to it.
func isMismatch(c Checked) bool { return c.Part == "store" && c.Verdict == Unsafe }

// checkBus looks at the way to the bus, at the bus, and whether it belongs to the store; a nil s means no store.
func checkBus(ctx context.Context, cfg Config, s store.Store) []Checked {
	reaching, stop := clockwork.WithTimeout(ctx, cfg.Clock, reachWait)
	defer stop()
	b, err := bus.Connect(reaching, bus.Config{URL: cfg.Line, Name: processName(cfg.Seed), AckWait: cfg.Times.AckWait, Clock: cfg.Clock})
	if err != nil {
		f := bus.Unreached(cfg.Line, err)
		return []Checked{{"bus", Unsafe, f.What, f.Why}}
	}
	defer b.Close()
	var found, workers []Checked
	if s != nil { // the store says whose messages count
		found = checkCreator(ctx, b, s, cfg)
		workers = checkWorkers(ctx, b, s, cfg.Clock)
	}
	r, err := b.Check(ctx)
	if err != nil {
		return []Checked{{"bus", Unsafe, "it lets us in, and JetStream does not answer: " + err.Error(), "with three hubs: do two of them run, and reach each other? else check its log"}}
	}
	return slices.Concat(goodPoints(&r), badPoints(&r), found, workers)
}

// listenWait is the time for which a check listens to workers: each sends its status once a second.
const listenWait = 1500 * time.Millisecond

// checkWorkers returns the workers that cannot work on some jobs, and why.
func checkWorkers(ctx context.Context, b *bus.Bus, s store.Store, clock clockwork.Clock) (found []Checked) {
	ctx, stop := clockwork.WithTimeout(ctx, clock, listenWait)
	defer stop()
	o, _ := (&Node{bus: b, clock: clock, home: s, epochs: keeping.NewEpochs(s, clock)}).Office(ctx, listenWait) // without a keeper it has the workers
	for i := range o.Workers {
		w := &o.Workers[i]
		for _, name := range slices.Sorted(maps.Keys(w.Refuses)) {
			found = append(found, Checked{"workers", Note, fmt.Sprintf("%s cannot work on job %s: %s", w.Name, name, w.Refuses[name].Why), "others do its part"})
		}
	}
	return found
}

// checkCreator checks that the queue on the bus is for this store. Other parts of the check report a store that cannot be
// read.
func checkCreator(ctx context.Context, b *bus.Bus, s store.Store, cfg Config) []Checked {
	var other *joinError
	if errors.As(checkSameHub(ctx, s, cfg.Home, b.Identity()), &other) || errors.As(checkSameStore(ctx, b, s, cfg.Home, cfg.Clock), &other) {
		return []Checked{{"store", Unsafe, other.found.What, other.found.Why}}
	}
	if creator, err := creatorOf(ctx, s, true, b.Name()); err == nil {
		b.Settle(creator, cfg.Times.AckWait)
	}
	return nil
}

// goodPoints returns findings about all that is in order with the bus, and a note if there is only one hub.
func goodPoints(r *bus.Report) []Checked {
	who := "a NATS server"
	if r.Hub {
		who = "a hub"
	}
	found := []Checked{{"bus", Safe, fmt.Sprintf("reached: %s (%s, NATS %s), and it lets us in", who, r.Server, r.Version), ""}}
	if r.TLS {
		found = append(found, Checked{"bus", Safe, "TLS: nobody on the network path can read along", ""})
	}
	if r.Hubs > 0 {
		found = append(found, Checked{"bus", Safe, fmt.Sprintf("JetStream answers, there and back in %v", roundTime(r.Way)), ""})
	}
	if r.Kept > 0 {
		found = append(found, Checked{"bus", Safe, fmt.Sprintf("a stored message came back in %v", roundTime(r.Kept)), ""})
	}
	switch {
	case r.Hubs == 1:
		found = append(found, Checked{"bus", Note, "one hub", "nothing is lost with it; calls pause while it is away. Three continue without one"})
	case r.Hubs > 1:
		found = append(found, Checked{"bus", Safe, fmt.Sprintf("%d hubs: work continues without one of them", r.Hubs), ""})
	}
	return found
}

// badPoints returns a finding for each problem in a report about the bus.
func badPoints(r *bus.Report) (found []Checked) {
	for _, f := range r.Findings {
		verdict := Note
		if f.Unsafe {
			verdict = Unsafe
		}
		found = append(found, Checked{"bus", verdict, f.What, f.Why})
	}
	return found
}

// roundTime cuts a time to the digits that help to judge it.
func roundTime(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// checkTimes returns the cluster's times, and a finding about them. Without settled times it returns the configured ones.
func checkTimes(ctx context.Context, s store.Store, configured Times) (Times, Checked) {
	t, err := readTimes(ctx, s)
	switch {
	case errors.Is(err, store.ErrMissing):
		return configured.withDefaults(), Checked{"times", Note, "not settled yet: no worker was there", "the first one settles --ack-wait and --lease"}
	case err != nil:
		return configured.withDefaults(), Checked{"times", Unsafe, timesName + ": " + err.Error(), "workers do not begin"}
	}
	return t, Checked{"times", Safe, fmt.Sprintf("--ack-wait %v and --lease %v, for all of the cluster", t.AckWait, t.Term), ""}
}

// checkStore probes whether the store is safe with several writers at once.
func checkStore(ctx context.Context, s store.Store, home string, chance *rand.Rand, probe store.ProbeConfig) Checked {
	err := store.Probe(ctx, s, chance, probe)
	switch {
	case errors.Is(err, store.ErrUnsafe):
		return Checked{"store", Unsafe, err.Error(), "two workers would both think that their results counted: take S3 with If-None-Match, or a file system that knows link(2)"}
	case err != nil:
		return Checked{"store", Unsafe, home + ": " + err.Error(), "without its store a cluster has nothing: check its name, and that this machine may write there"}
	}
	return Checked{"store", Safe, home + ": one of two writers of one name wins, and what it wrote is seen at once", ""}
}
