package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// stirred reports whether a watch has anything to tell.
func stirred(w *Watch) bool {
	synctest.Wait()
	select {
	case <-w.Changed():
		return true
	default:
		return false
	}
}

// A watch is stirred by a phase that changes and by a wait that is lengthened, by nothing
// else, and once however often that happens while nobody listens. At the end it has what
// was known, also where nobody ever listened.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Machine: machine.Config{Lane: exact}})
		go c.Run()
		w, deaf := c.Watch(), c.Watch()
		s := open(t, c, machine.RunConfig{Concurrency: 4})
		s.Offer(items(4, ""))
		got := granted(s)
		s.Settle(got[0], ok)
		if stirred(w) {
			t.Error("stirred by calls that leave and are answered")
		}
		s.HandOver(got[1], within(10*time.Second))
		if !stirred(w) || stirred(w) {
			t.Error("not stirred once by a cooldown")
		}
		s.HandOver(got[2], within(5*time.Second))
		if stirred(w) {
			t.Error("stirred by a refusal that asks for nothing more")
		}
		s.HandOver(got[3], within(time.Minute))
		if !stirred(w) {
			t.Error("not stirred by a wait that is lengthened")
		}
		s.Drain()
		finish(s)
		c.Close()
		<-c.Done()
		knows(t, "one that listens", w)
		knows(t, "one that is deaf", deaf)
	})
}

func knows(t *testing.T, who string, w *Watch) {
	t.Helper()
	select {
	case known := <-w.Last():
		if k := known.Lanes[machine.DefaultPool]; k.Validate() != nil || k.Until.IsZero() {
			t.Errorf("%s: %+v", who, known)
		}
	default:
		t.Errorf("%s knows nothing at the end", who)
	}
}

// A watch of a coordinator that has ended keeps nobody waiting.
func TestWatchAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		go c.Run()
		c.Close()
		<-c.Done()
		w := c.Watch()
		select {
		case <-w.Last():
			t.Error("something is known of nothing")
		case <-w.Changed():
			t.Error("something has changed after the end")
		default:
		}
	})
}
