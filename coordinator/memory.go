package coordinator

import (
	"context"

	"github.com/headrace/headrace/coordinator/machine"
)

// memoryQuestion asks what is known of the lanes. Sent by SaveLanes.
type memoryQuestion struct {
	reply chan map[string]machine.LaneMemory
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
	c.tell(machine.LaneRestored(name, k))
	return nil
}
