package model

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

func sameContents(a, b any) bool { return reflect.DeepEqual(a, b) }

// patience bounds the wait of an ordinary call for a memory's sake: the longest hold that a
// server may ask for, and a bucket that is a day deep, in debt.
const patience = 26 * time.Hour

// Whatever a file holds, a law that takes it up is a law: it waits a finite time, paces
// at the floor at least, lets a call leave some day, and learns from what comes.
func FuzzRestore(f *testing.F) {
	golden := must.Get(os.ReadFile("testdata/memory_1.json"))(f)
	f.Add(golden, int64(0))
	f.Add(golden, int64(3600))
	f.Add([]byte(`{"version":1,"law":"plain","at":"2024-02-29T12:00:00Z","hold":"2024-02-29T12:00:20Z","ramp":{"at":"2024-02-29T12:00:00Z","share":1,"target":11,"time_s":100},"plain":{"rate":7,"goal":10,"escalation":2}}`), int64(5))
	f.Add([]byte(`{"version":1,"law":"model","at":"2024-02-29T12:00:00Z","limits":[{"on":"requests","source":"seen","refill":1e-9,"capacity":1e12,"debt":1e300}]}`), int64(-5))
	f.Add([]byte(`{"version":1,"law":"model","at":"0001-01-02T00:00:00Z","hold":"9999-01-01T00:00:00Z","chance":[[-1,2,3],[63,250,250],[1,2,300]],"cap":{"most":1}}`), int64(1))
	f.Add([]byte(`{"version":2}`), int64(1))
	f.Fuzz(func(t *testing.T, text []byte, later int64) {
		var k limiter.Memory
		if json.Unmarshal(text, &k) != nil {
			return
		}
		now := noon.Add(time.Duration(later%(1<<30)) * time.Second)
		for name, c := range lawsOf {
			law := newLaw(c, now, seeded(1))
			if law.Restore(now, k) == nil {
				live(t, name, law, now)
			}
		}
	})
}

// live puts a law that was restored to use.
func live(t *testing.T, name string, law limiter.Law, now time.Time) {
	cost := limiter.Cost{Requests: 1, Input: 100, Output: 100}
	began := now
	for i := range 60 {
		now = untilLeave(t, name, law, now, cost)
		if now.Sub(began) > patience {
			t.Fatalf("%s: no call left in %v", name, now.Sub(began))
		}
		v := law.View(now, cost)
		_ = v.String()
		k := law.Sent(now, cost, i%5)
		n := limiter.News{Ticket: k, Sent: now, Cost: cost, Present: true, Latency: time.Second, Good: true}
		now = now.Add(100 * time.Millisecond)
		switch i % 6 {
		case 3:
			law.Straggled(now, n)
		case 4:
			n.Sightings = []limiter.Sighting{{Dimension: limiter.Requests, Limit: 600, Remaining: 0, Reset: time.Minute, HasReset: true}}
			if r := law.Refused(now, n); !r.Alone && r.Until.Sub(now) > time.Hour {
				t.Fatalf("%s: refused until %v from now", name, r.Until.Sub(now))
			}
			law.Resume(now)
			law.Climb(now)
		default:
			law.Answered(now, n)
		}
		began = now
	}
	if _, err := json.Marshal(law.Save(now)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// untilLeave waits until one call may leave. The longer that takes, the coarser it looks.
func untilLeave(t *testing.T, name string, law limiter.Law, now time.Time, cost limiter.Cost) time.Time {
	began := now
	for {
		law.Tick(now, true)
		pace := viewOf(law, now).Most
		if !(pace >= floorRate) && lawsOf[name].Law != limiter.Plain || math.IsNaN(pace) || pace < 0 {
			t.Fatalf("%s: a pace of %v", name, pace)
		}
		wait, _ := law.Wait(now, cost)
		if wait < 0 || wait > limiter.DefaultMaxDirected+time.Second {
			t.Fatalf("%s: a wait of %v", name, wait)
		}
		if wait == 0 || now.Sub(began) > patience {
			return now
		}
		now = now.Add(max(wait, now.Sub(began)/10))
	}
}
