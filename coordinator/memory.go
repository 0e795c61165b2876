package coordinator

import (
	"context"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// A Memory is the part of a coordinator's knowledge that is worth keeping over a restart.
type Memory struct {
	Lanes map[string]machine.LaneMemory // by name
	Items map[string]machine.ItemMemory // that have failed and are not over, by key
}

// memoryQuestion asks for a Memory. Sent by Save.
type memoryQuestion struct {
	reply chan Memory
}

// watchQuestion asks for news when the knowledge of the lanes is worth saving. Sent by Watch.
type watchQuestion struct{ watch *Watch }

// A Watch says when the knowledge of the lanes is worth saving. A slow receiver blocks nothing.
type Watch struct {
	changed chan struct{} // holds one while something has changed
	last    chan Memory
}

// Watch begins one. The loop hears it before any later message of the caller.
func (c *Coordinator) Watch() *Watch {
	w := &Watch{changed: make(chan struct{}, 1), last: make(chan Memory, 1)}
	c.send(message{question: watchQuestion{watch: w}})
	return w
}

// Changed holds a value once a lane has changed its phase or must wait longer, since the last
// receive. That is knowledge which would be lost, and missed, if the process ended now.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Last yields, once, the knowledge at the return of [Coordinator.Run]. If Run had returned before
// the Watch began, it yields nothing.
func (w *Watch) Last() <-chan Memory { return w.last }

// tellWatches tells the watches that the knowledge of the lanes has changed.
func (l *loop) tellWatches() {
	for _, w := range l.watches {
		select {
		case w.changed <- struct{}{}:
		default: // they have not looked since the last time
		}
	}
}

// leave gives each watch the final memory.
func (l *loop) leave(now time.Time) {
	for _, w := range l.watches {
		w.last <- l.memory(now) // has room: there is only one end
	}
}

// Save asks for the memory for a restart; see [machine.LaneMemory] and [machine.ItemMemory]. A
// lane that was never called, or not for a long time, is not in it. The error is ErrClosed or
// ctx's.
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

// RestoreLane passes on an earlier coordinator's memory of a lane. It counts only before the
// lane's first use. The error says why a memory cannot be read.
func (c *Coordinator) RestoreLane(name string, k machine.LaneMemory) error {
	if err := k.Validate(); err != nil {
		return err
	}
	c.sendFact(machine.LaneRestored(name, k))
	return nil
}
