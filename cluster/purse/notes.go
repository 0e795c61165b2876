package purse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/limiter"
)

// Slices is the number of notes into which a cap, and each raise of it, is cut. A worker that dies loses less than a
// note of what it has not spent, and a worker without work keeps as much: a five-hundredth of the cap. Each note is one
// object in the store.
const Slices = 500

// notes draws notes of a job in order: those of the first cap, then those of each raise.
type notes struct {
	caps  []limiter.Money
	most  limiter.Money // that all notes may be worth: less than the latest cap if that was lowered
	raise int           // of caps
	taken int           // of its notes, those that are known to be taken
}

// draw takes the next note, and returns its value. The error is [ErrSpent] if all are taken.
func (n *notes) draw(ctx context.Context, c *Config) (limiter.Money, error) {
	caps, most, err := c.Caps(ctx)
	if err != nil {
		return 0, fmt.Errorf("its cap: %w", err)
	}
	n.caps, n.most = caps, most
	for n.raise < len(n.caps) && n.drawn(n.taken+1) <= n.most {
		switch taken, err := n.take(ctx, c); {
		case err != nil:
			return 0, fmt.Errorf("draw money: %w", err)
		case taken:
			return n.value(), nil
		}
	}
	return 0, ErrSpent
}

// take tries to take a note, and goes on to the next raise after the last note.
func (n *notes) take(ctx context.Context, c *Config) (taken bool, err error) {
	if n.taken == Slices {
		n.raise, n.taken = n.raise+1, 0
		return false, nil
	}
	name := noteName(c.Job, n.raise, n.taken+1)
	err = store.CreateBytes(ctx, c.Store, name, []byte(c.Who+"\n"))
	if errors.Is(err, store.ErrExists) {
		return false, n.refresh(ctx, c)
	}
	if err == nil {
		n.taken++
	}
	return err == nil, err
}

// refresh finds the latest note that others have taken.
func (n *notes) refresh(ctx context.Context, c *Config) error {
	n.taken++ // the one that was there
	return n.look(ctx, c)
}

// look counts the notes of the present raise that are taken, from those that are known to be.
func (n *notes) look(ctx context.Context, c *Config) error {
	prefix := raisePrefix(c.Job, n.raise)
	for o, err := range c.Store.List(ctx, prefix, noteName(c.Job, n.raise, n.taken)) {
		if err != nil {
			return err
		}
		if note, err := strconv.Atoi(strings.TrimPrefix(o.Name, prefix)); err == nil {
			n.taken = min(max(n.taken, note), Slices)
		}
	}
	return nil
}

// value returns the value of a note of the present raise. What the division leaves is nobody's.
func (n *notes) value() limiter.Money { return (n.caps[n.raise] - n.before()) / Slices }

// before returns the cap before the present raise.
func (n *notes) before() limiter.Money {
	if n.raise == 0 {
		return 0
	}
	return n.caps[n.raise-1]
}

// drawn returns what the job has drawn once so many notes of the present raise are taken.
func (n *notes) drawn(taken int) limiter.Money {
	return n.before() + limiter.Money(min(taken, Slices))*n.value()
}

// Drawn returns what all workers have drawn of the caps of a job.
func Drawn(ctx context.Context, s store.Store, job string, caps []limiter.Money) (limiter.Money, error) {
	n, c := notes{caps: caps}, &Config{Store: s, Job: job}
	for n.raise = len(caps) - 1; n.raise >= 0; n.raise-- {
		n.taken = 0
		if err := n.look(ctx, c); err != nil || n.taken > 0 {
			return n.drawn(n.taken), err
		}
	}
	return 0, nil
}

// raisePrefix begins the names of the notes of a raise; a list has them in order.
func raisePrefix(name string, raise int) string {
	return fmt.Sprintf("%s%03d-", job.MoneyFolder(name), raise)
}

func noteName(name string, raise, note int) string {
	return fmt.Sprintf("%s%03d", raisePrefix(name, raise), note)
}
