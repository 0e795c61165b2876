package coordinator

import (
	"context"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// A Memory is what a coordinator knows that is worth knowing after a restart.
type Memory struct {
	Lanes map[string]machine.LaneMemory // by name
	Items map[string]machine.ItemMemory // that have failed and are not over, by key
}

// memoryQuestion asks for a Memory. Sent by Save.
type memoryQuestion struct {
	reply chan Memory
}

// watchQuestion asks to be told when what is known of the lanes is worth saving. Sent by
// Watch.
type watchQuestion struct{ watch *Watch }

// A Watch says when what is known of the lanes is worth saving. Nothing is kept waiting
// by who does not listen.
type Watch struct {
	changed chan struct{} // holds one while something has changed
	last    chan Memory
}

// Watch begins one. It is heard before whatever the caller says after it.
func (c *Coordinator) Watch() *Watch {
	w := &Watch{changed: make(chan struct{}, 1), last: make(chan Memory, 1)}
	c.send(message{question: watchQuestion{watch: w}})
	return w
}

// Changed holds a value once a lane has changed its phase or was told to wait longer,
// since it was last received: what would be forgotten if the process ended at this
// moment, and would hurt.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Last yields, once, what was known when [Coordinator.Run] returned. One of
// a coordinator that was closed before never does.
func (w *Watch) Last() <-chan Memory { return w.last }

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
		w.last <- l.memory(now) // has room: there is but one end
	}
}

// Save asks what is worth knowing after a restart; see [machine.LaneMemory] and
// [machine.ItemMemory]. A lane that was never called, or not for a long time, is not in it.
// The error is ErrClosed or ctx's.
func (c *Coordinator) Save(ctx context.Context) (Memory, error) {
	reply := make(chan Memory, 1)
	c.send(message{question: memoryQuestion{reply: reply}})
	select {
	case known := <-reply:
		return known, nil
	case <-c.done:
		return Memory{}, ErrClosed
	case <-ctx.Done():
		return Memory{}, context.Cause(ctx)
	}
}

func (l *loop) memory(now time.Time) Memory {
	return Memory{Lanes: l.machine.SaveLanes(now), Items: l.machine.SaveItems()}
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
