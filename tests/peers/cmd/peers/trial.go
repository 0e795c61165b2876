package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/tests/peers/servers"
)

// outcome is the result of a row.
type outcome struct {
	Name      string        `json:"server"`
	Items     int           `json:"items"`
	Ideal     float64       `json:"ideal_s"`
	Took      float64       `json:"took_s"`
	Ratio     float64       `json:"ratio"` // of a run that was given up: at least this
	Server    servers.Tally `json:"server_counted"`
	Throttled int64         `json:"headrace_counted"`
	Done      int           `json:"done"`
	Failed    int           `json:"failed"`
	Misses    []string      `json:"misses,omitempty"` // where the row misses its target
	Faults    []string      `json:"faults,omitempty"` // where the run breaks the guard
	Absent    bool          `json:"absent,omitempty"`
}

// repeat runs a row as often as the flags say and returns the run in the middle.
func repeat(ctx context.Context, p plan, dir string, r row) (outcome, error) {
	var tries []outcome
	for range p.times {
		o, err := trial(ctx, p, dir, r)
		if errors.Is(err, servers.ErrAbsent) {
			return outcome{Name: r.name, Absent: true}, nil
		}
		if err != nil {
			return o, fmt.Errorf("%s: %w", r.name, err)
		}
		tries = append(tries, o)
	}
	slices.SortFunc(tries, func(a, b outcome) int { return cmp.Compare(a.rank(), b.rank()) })
	o := tries[len(tries)/2]
	if !o.unlucky(r) {
		return o, nil
	}
	if again, err := trial(ctx, p, dir, r); err == nil && len(again.Faults) == 0 {
		return again, nil
	}
	return o, nil
}

// unlucky reports whether a run did everything right, but far from the ideal, or so slowly that it was given up. Such a
// run is repeated once: jitter may be far off in one run of ten, while a broken law is in each. A lost item, or books
// that do not match, are never bad luck.
func (o outcome) unlucky(r row) bool {
	figures := len(r.bound.guard().misses(o))
	return figures > 0 && figures == len(o.Faults) && (o.Done == o.Items || o.gaveUp(r))
}

// gaveUp reports whether the row was out of time, with a right answer for each item until then.
func (o outcome) gaveUp(r row) bool {
	return o.Took >= limit(r).Seconds() && o.Failed == 0 && o.Server.Answered == int64(o.Done)
}

// rank orders runs: a run that was given up would have taken longer in proportion to what it
// left.
func (o outcome) rank() float64 { return o.Ratio * float64(o.Items) / float64(max(o.Done, 1)) }

// trial runs a row once, in a folder of its own and against a server of its own.
func trial(ctx context.Context, p plan, parent string, r row) (o outcome, err error) {
	dir, err := os.MkdirTemp(parent, "row-")
	if err != nil {
		return o, err
	}
	peer, err := r.start(ctx, dir)
	if err != nil {
		return o, err
	}
	defer peer.Stop()
	if r.align > 0 {
		time.Sleep(time.Until(time.Now().Truncate(r.align).Add(r.align)))
	}
	s, took, err := headrace(ctx, p, r, peer.URL, dir)
	if err = cmp.Or(ctx.Err(), err); err != nil { // an interrupted run says nothing about the law
		return o, err
	}
	counted, err := peer.Tally()
	if err != nil {
		return o, err
	}
	return judge(r, s, took, counted), nil
}

// judge returns the outcome of a run, with its misses and faults. Two more faults are possible once
// every item is done. The server has not given one answer for each, or headrace has not proved its
// own books.
func judge(r row, s said, took time.Duration, counted servers.Tally) outcome {
	o := outcome{
		Name: r.name, Items: r.items, Ideal: r.ideal(r.items), Took: took.Seconds(),
		Server: counted, Throttled: s.Throttled, Done: s.Succeeded, Failed: s.Failed,
	}
	o.Ratio = o.Took / o.Ideal
	o.Misses = r.bound.misses(o)
	o.Faults = r.bound.guard().misses(o)
	if done := int64(o.Done); done == int64(o.Items) && counted.Answered != done {
		o.Faults = append(o.Faults, fmt.Sprintf("%d answers for %d items", counted.Answered, done))
	}
	if !s.Proved && o.Done == o.Items {
		o.Faults = append(o.Faults, "its own books do not close")
	}
	return o
}

// verdict returns the last column of the table.
func (o outcome) verdict() string {
	switch {
	case o.Absent:
		return "left out: not on this machine"
	case len(o.Faults) > 0:
		return "FAIL: " + strings.Join(o.Faults, ", ")
	case len(o.Misses) > 0:
		return "misses: " + strings.Join(o.Misses, ", ")
	}
	return "ok"
}
