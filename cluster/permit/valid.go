package permit

import (
	"errors"
	"fmt"
	"time"
)

// ErrVersion is the kind of error about a message of another version.
var ErrVersion = errors.New("permit: version")

// Validate checks that this version reads the ask. Its error is [ErrVersion], or [ErrMessage]
// for an ask that no worker sends.
func (a *Ask) Validate() error {
	if err := checkHead(a.Version, a.Worker, a.Job, a.Limit); err != nil {
		return err
	}
	switch {
	case a.Seq == 0:
		return fmt.Errorf("%w: ask: its number is 0", ErrMessage)
	case len(a.Wants) > MaxWants || a.More < 0:
		return fmt.Errorf("%w: ask: %d wants and %d more", ErrMessage, len(a.Wants), a.More)
	case len(a.Reports) > MaxReports || len(a.Reports) > 0 && a.First == 0:
		return fmt.Errorf("%w: ask: %d reports from number %d on", ErrMessage, len(a.Reports), a.First)
	}
	for _, c := range a.Wants {
		if !c.valid() {
			return fmt.Errorf("%w: ask: no call draws %v", ErrMessage, c)
		}
	}
	for i := range a.Reports {
		if err := a.Reports[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// oldest is more than any call takes.
const oldest = 7 * 24 * time.Hour

func (r *Report) validate() error {
	switch {
	case r.Number == 0 || r.Epoch == 0:
		return fmt.Errorf("%w: report: of no permit", ErrMessage)
	case r.Unused && r.Ended != nil:
		return fmt.Errorf("%w: report: permit %d was not used, and its call ended", ErrMessage, r.Number)
	case !r.Cost.valid() || r.Age < 0 || r.Age > oldest:
		return fmt.Errorf("%w: report: a call of %v, %v ago", ErrMessage, r.Cost, r.Age)
	case r.Ended != nil:
		_, err := r.Ended.Machine()
		return err
	}
	return nil
}

// Validate checks that this version reads the give, as [Ask.Validate] does.
func (g *Give) Validate() error {
	if err := checkHead(g.Version, g.Worker, g.Job, g.Limit); err != nil {
		return err
	}
	if g.Epoch == 0 || len(g.Permits) > MaxPermits {
		return fmt.Errorf("%w: give: %d permits of keeper %d", ErrMessage, len(g.Permits), g.Epoch)
	}
	for _, p := range g.Permits {
		if p.Number == 0 || !p.Cost.valid() {
			return fmt.Errorf("%w: give: permit %d for %v", ErrMessage, p.Number, p.Cost)
		}
	}
	return nil
}

// Validate checks that this version reads the message, as [Ask.Validate] does.
func (c *Cool) Validate() error {
	if err := checkHead(c.Version, "-", "-", c.Limit); err != nil {
		return err
	}
	if c.Epoch == 0 || c.For < 0 {
		return fmt.Errorf("%w: cool: for %v, of keeper %d", ErrMessage, c.For, c.Epoch)
	}
	return nil
}

func checkHead(version int, worker, job, limit string) error {
	if version != Version {
		return fmt.Errorf("%w: %d, and this is %d", ErrVersion, version, Version)
	}
	for _, name := range []string{worker, job, limit} {
		if name == "" || len(name) > MaxName {
			return fmt.Errorf("%w: a name has 1..%d bytes, and %.20q… has %d", ErrMessage, MaxName, name, len(name))
		}
	}
	return nil
}
