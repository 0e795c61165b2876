package observe

import (
	"fmt"
	"runtime/debug"
)

// caught is deferred around whatever others wrote: the first panic is kept, and passed on
// with the last event.
func (r *Recorder) caught(what string) {
	if v := recover(); v != nil {
		err := fmt.Errorf("observe: %s panicked: %v\n%s", what, v, debug.Stack())
		r.fault.CompareAndSwap(nil, &err)
	}
}

// passOn panics with what was caught, if anything was.
func (r *Recorder) passOn() {
	if err := r.fault.Load(); err != nil {
		panic(*err)
	}
}
