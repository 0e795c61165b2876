package observe

import (
	"fmt"
	"runtime/debug"
)

// caught is deferred around all functions of others. It keeps the first panic, which passOn
// raises with the last event.
func (r *Recorder) caught(what string) {
	if v := recover(); v != nil {
		err := fmt.Errorf("observe: %s panicked: %v\n%s", what, v, debug.Stack())
		r.fault.CompareAndSwap(nil, &err)
	}
}

// passOn panics with the panic that was caught, if there was one.
func (r *Recorder) passOn() {
	if err := r.fault.Load(); err != nil {
		panic(*err)
	}
}
