package coordinator

import (
	"context"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// memoryQuestion asks what is known of the lanes. Sent by SaveLanes.
type memoryQuestion struct {
	reply chan map[string]machine.LaneMemory
}

// watchQuestion asks to be told when what is known of the lanes is worth saving. Sent by
// Watch.
type watchQuestion struct{ watch *Watch }

// A Watch says when what is known of the lanes is worth saving. Nothing is kept waiting
// by who does not listen.
type Watch struct {
	changed chan struct{} // holds one while something has changed
	last    chan map[string]machine.LaneMemory
}

// Watch begins one. It is heard before whatever the caller says after it.
func (c *Coordinator) Watch() *Watch {
	w := &Watch{changed: make(chan struct{}, 1), last: make(chan map[string]machine.LaneMemory, 1)}
	c.send(message{question: watchQuestion{watch: w}})
	return w
}

// Changed holds a value once a lane has changed its phase or was told to wait longer,
// since it was last received: what would be forgotten if the process ended at this
// moment, and would hurt.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Last yields, once, what was known of the lanes when [Coordinator.Run] returned. One of
// a coordinator that was closed before never does.
func (w *Watch) Last() <-chan map[string]machine.LaneMemory { return w.last }

// stir tells those who watch that something has changed.
func (l *loop) stir() {
	for _, w := range l.watches {
		select {
		case w.changed <- struct{}{}:
		default: // they have not looked since it was told before
		}
	}
}

// leave gives those who watch what is known at the end.
func (l *loop) leave(now time.Time) {
	for _, w := range l.watches {
		w.last <- l.machine.SaveLanes(now) // has room: there is but one end
	}
}

// SaveLanes asks what is known of the lanes that is worth knowing after a restart, by
// name; see [machine.LaneMemory]. A lane that was never called, or not for a long time,
// is not in it. The error is ErrClosed or ctx's.
func (c *Coordinator) SaveLanes(ctx context.Context) (map[string]machine.LaneMemory, error) {
	reply := make(chan map[string]machine.LaneMemory, 1)
	c.send(message{question: memoryQuestion{reply: reply}})
	select {
	case lanes := <-reply:
		return lanes, nil
	case <-c.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// RestoreLane says what an earlier coordinator knew of a lane. It is heard before the
// lane's first use, and else ignored. The error says why a memory cannot be read.
func (c *Coordinator) RestoreLane(name string, k machine.LaneMemory) error {
	if err := k.Validate(); err != nil {
		return err
	}
	c.fact(machine.LaneRestored(name, k))
	return nil
}
