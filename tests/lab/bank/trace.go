package bank

import (
	"fmt"
	"io"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
)

// Trace prints what happens in a world: a line for each second with an event, and the
// machine's transitions between them.
func (w World) Trace(out io.Writer, law lab.Rival, seed uint64) error {
	setting, server := w.setting(seed)
	teller := &teller{out: out, refusal: server.Status}
	setting.Watch = teller.watch
	l := w.law(law, setting.Batch, seed)
	lab.Tell(l, teller.transition)
	h := setting.Run(l)
	teller.line()
	_, err := fmt.Fprintf(out, "\n%s, seed %d: %s, wasted %.0f, optimum %.1f s\n", w.Title(), seed,
		w.result(h, server, seed).cell(), w.result(h, server, seed).Wasted, w.optimum(seed, h.Neighbours).Seconds())
	return err
}

// teller adds up a second at a time.
type teller struct {
	out      io.Writer
	refusal  sim.Kind
	second   time.Duration
	inFlight int

	sent, accepted, refused, other int // all but sent as they arrive at the server
}

// watch counts a call in the second in which it leaves, or arrives at the server and is judged. The
// news of its end only lowers the number in flight.
func (t *teller) watch(at time.Duration, _ lab.Call, v *sim.Verdict, end bool) {
	t.until(at)
	switch {
	case v == nil:
		t.sent++
		t.inFlight++
	case !end && v.Kind == sim.Accepted:
		t.accepted++
	case !end && v.Kind == t.refusal:
		t.refused++
	case !end:
		t.other++
	default:
		t.inFlight--
	}
}

// until prints the seconds that have passed.
func (t *teller) until(at time.Duration) {
	if now := at.Truncate(time.Second); now > t.second {
		t.line()
		t.second = now
	}
}

func (t *teller) line() {
	if t.sent+t.accepted+t.refused+t.other > 0 {
		fmt.Fprintf(t.out, "%6.0f s  sent %4d  accepted %4d  refused %4d  other %3d  in flight %4d\n",
			t.second.Seconds(), t.sent, t.accepted, t.refused, t.other, t.inFlight)
	}
	t.sent, t.accepted, t.refused, t.other = 0, 0, 0, 0
}

func (t *teller) transition(m machine.Transition) {
	at := m.At.Sub(lab.Start)
	t.until(at)
	fmt.Fprintf(t.out, "%10.3f s  %v\n", at.Seconds(), m)
}
