package promptfile

import (
	"bytes"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// checkRetries returns how often the run may ask items again because of Check: a tenth of the
// items that are left. It is 0 if their number is not known.
func (r *run) checkRetries() int {
	if r.cfg.Input.Stream {
		return 0
	}
	left := r.plan.Left()
	if r.cfg.Sample > 0 {
		left = min(left, r.cfg.Sample)
	}
	return max(1, left/batch.MisfitShare)
}

// Misfit returns what Check finds wrong with an answer, with the beginning of it; nil: nothing. The
// answer's room is given back: the item may be asked again, and nobody then takes this answer. A
// filtered answer is left to FilteredFails. A Job calls Misfit by itself.
func (c *Config) Misfit(it *Item, reply *provider.Reply) *provider.Error {
	if c.Check == nil || c.FilteredFails && provider.IsFiltered(reply.Finish) {
		return nil
	}
	fits := false
	defer func() {
		if !fits && reply.Done != nil { // also if Check panics
			reply.Done()
			reply.Done = nil
		}
	}()
	fault := c.Check(it, reply)
	if fits = fault == nil; fits {
		return nil
	}
	it.misfits++
	reply.Body = bytes.Clone(reply.Body[:min(len(reply.Body), provider.MaxErrorBody)])
	return &provider.Error{
		Kind: provider.Misfit, Status: reply.Status, RequestID: reply.RequestID, Message: fault.Error(), Body: reply.Body, Err: fault,
	}
}
