package node

import (
	"math"

	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/permit"
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
	Pace     *float64     `json:"per_second"` // calls that are let through; null: as many as are wanted
	Given    uint64       `json:"given"`      // permits, since the keeper began, as the next three
	Ended    uint64       `json:"ended"`
	Refused  uint64       `json:"refused"`
	Vanished uint64       `json:"vanished"`
	Stopped  string       `json:"stopped,omitempty"` // why; "": it is not
	Jobs     []JobPicture `json:"jobs"`
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
	if l.Stopped != nil {
		p.Stopped = l.Stopped.Text
	}
	for _, j := range l.Jobs {
		p.Jobs = append(p.Jobs, JobPicture{j.Name, j.Weight, j.Given, j.Wanted, j.Out, len(j.Workers)})
	}
	return p
}
