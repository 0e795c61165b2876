package node

import (
	"math"

	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/limiter"
)

// A Picture is how all limits of a cluster stand, as its keeper says each second.
type Picture struct {
	Version int            `json:"v"`     // of the words that it hears from workers, and says to them
	Epoch   uint64         `json:"epoch"` // of the keeper
	Limits  []LimitPicture `json:"limits"`
}

// A LimitPicture is how one limit stands.
type LimitPicture struct {
	Name     string       `json:"name"`
	Phase    string       `json:"phase"`
	InFlight int          `json:"in_flight"`
	Why      string       `json:"why,omitempty"`    // what the next call waits for; "": it does not
	Bound    string       `json:"bound"`            // the word of what holds its calls back, as of a run; "": nothing
	WaitS    float64      `json:"wait_s,omitempty"` // how long, as far as time alone decides
	Known    []Known      `json:"known,omitempty"`  // what is believed of it
	Pace     *float64     `json:"per_second"`       // calls that are let through; null: as many as are wanted
	Given    uint64       `json:"given"`            // permits, since the keeper began, as the next three
	Ended    uint64       `json:"ended"`
	Refused  uint64       `json:"refused"`
	Vanished uint64       `json:"vanished"`
	Stopped  string       `json:"stopped,omitempty"` // why; "": it is not
	Jobs     []JobPicture `json:"jobs"`
}

// Known is what is believed of one thing that is limited.
type Known struct {
	Limit     string  `json:"limit"` // requests, tokens, input_tokens or output_tokens
	PerSecond float64 `json:"per_second"`
	Source    string  `json:"source"` // told, learned or seen, which is by headers
}

// A JobPicture is how a job stands under a limit.
type JobPicture struct {
	Job     string  `json:"job"`
	Weight  float64 `json:"weight"`
	Given   uint64  `json:"given"`
	Wanted  int     `json:"wanted"`
	Out     int     `json:"out"`
	Workers int     `json:"workers"`
}

func pictureOf(s *keeper.Status) Picture {
	p := Picture{Version: permit.Version, Epoch: s.Epoch, Limits: make([]LimitPicture, 0, len(s.Limits))}
	for i := range s.Limits {
		p.Limits = append(p.Limits, limitOf(&s.Limits[i]))
	}
	return p
}

func limitOf(l *keeper.LimitStatus) LimitPicture {
	p := LimitPicture{
		Name: l.Name, Phase: l.Lane.Phase.String(), InFlight: l.Lane.InFlight, Jobs: make([]JobPicture, 0, len(l.Jobs)),
		Given: l.Counts.Given, Ended: l.Counts.Ended, Refused: l.Counts.Refused, Vanished: l.Counts.Vanished,
	}
	if pace := l.Lane.Rate; !math.IsInf(pace, 0) && !math.IsNaN(pace) {
		p.Pace = &pace
	}
	p.Why, p.Bound, p.WaitS, p.Known = l.Lane.Why, l.Lane.Bound.String(), l.Lane.Wait.Seconds(), knownOf(&l.Lane.View)
	if l.Stopped != nil {
		p.Stopped = l.Stopped.Text
	}
	for _, j := range l.Jobs {
		p.Jobs = append(p.Jobs, JobPicture{j.Name, j.Weight, j.Given, j.Wanted, j.Out, len(j.Workers)})
	}
	return p
}

// dimensions are the words of what may be limited, in the order of a view.
var dimensions = [...]string{"requests", "tokens", "input_tokens", "output_tokens"}

func knownOf(v *limiter.View) (known []Known) {
	for i := range v.Limits {
		if l := &v.Limits[i]; l.Known() && l.Refill > 0 && !math.IsInf(l.Refill, 0) {
			known = append(known, Known{dimensions[i], l.Refill, l.Source.String()})
		}
	}
	return known
}
