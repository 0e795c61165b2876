package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// tally is what the results of a run come to.
type tally struct {
	*runner
	in        *intake
	out       *sink
	control   *batch.Control
	sum       batch.Summary
	truncated int            // answers that ended at their length limit
	kinds     map[string]int // failed items by code
	stopped   error          // why some items were not run, if the provider would not
	released  bool           // a stream is not waited for any more
}

// take deals with one result: into the files, or not run and into none.
func (t *tally) take(res *result) {
	if errors.Is(res.Err, batch.ErrNotRun) {
		t.notRun(res.Err)
		t.out.end(res.Index, nil)
		return
	}
	if kind, ok := provider.FinishKind(res.Finish); ok && kind == provider.Truncated {
		t.truncated++
	}
	o := lineOf(res, t.redact)
	if o.failed {
		t.fail(res, o.line.Error.Code)
	}
	t.out.end(res.Index, &o)
}

func (t *tally) fail(res *result, code string) {
	if t.kinds == nil {
		t.kinds = map[string]int{}
	}
	t.kinds[code]++
	t.log.Info("item failed", "id", res.Item.ID, "line", res.Item.Line, "lane", res.Lane, "error", t.redactError(res.Err))
	var panicked *batch.PanicError
	if errors.As(res.Err, &panicked) {
		t.log.Error("panic", "id", res.Item.ID, "value", fmt.Sprint(panicked.Value), "stack", string(panicked.Stack))
	}
}

// notRun notes why an item was not run. Once no lane is left, nothing that a
// stream may still bring can be run: it is not waited for.
func (t *tally) notRun(err error) {
	e := faultOf(err)
	if !errors.Is(err, machine.ErrWaitTooLong) && !errors.Is(err, machine.ErrLaneStopped) &&
		(e == nil || !e.Kind.StopsLane() && !e.Kind.StopsLaneIfFirst()) {
		return
	}
	t.stopped = err
	if t.in.src.stream && !t.released && t.noLaneLeft() {
		t.released = true
		close(t.in.halted)
	}
}

func (t *tally) noLaneLeft() bool {
	s, err := t.control.Status(t.halt.ctx, math.MaxInt)
	if err != nil {
		return true // the run is over
	}
	for _, l := range s.Lanes {
		if l.Phase != machine.Stopped {
			return false
		}
	}
	return true
}
