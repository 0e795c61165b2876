package batch

import (
	"context"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
)

// Shared is a coordinator that several runs use at once, so that together they
// keep to one account's limits. Lanes of the same name are the same lane.
type Shared struct {
	coordinator *coordinator.Coordinator
	clock       clockwork.Clock
}

// NewShared starts one. Only options about lanes, limits, the clock and the seed
// concern it. Close it when its runs are over.
func NewShared(opts ...Option) (*Shared, error) {
	c := configure(opts)
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Shared{coordinator: c.newCoordinator(), clock: c.clock}
	go s.coordinator.Run()
	return s, nil
}

// Close drains the runs that are still open, waits until they are over, and
// then for the coordinator itself.
func (s *Shared) Close() {
	s.coordinator.Close()
	<-s.coordinator.Done()
}

// Status takes a picture of all lanes' n busiest. The error is ctx's, or that
// of a Shared that was closed.
func (s *Shared) Status(ctx context.Context, n int) (Status, error) {
	return s.coordinator.Status(ctx, n)
}

// ResetLane lets a lane flow again at once, with nothing held against it.
func (s *Shared) ResetLane(name string) { s.coordinator.ResetLane(name) }

// WithShared runs on the coordinator of s, beside whatever else runs there. Lanes,
// limits, the clock and the seed are those of s: to say anything else of lanes
// here is an error.
func WithShared(s *Shared) Option {
	return option(func(c *config) { c.shared = s }, "WithShared()")
}

func (c *config) newCoordinator() *coordinator.Coordinator {
	return coordinator.New(coordinator.Config{Machine: c.machine, Clock: c.clock, ReadAhead: c.readAhead})
}
