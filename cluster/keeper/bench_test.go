package keeper

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
)

// What a permit costs its keeper, from the bytes of the ask to those of the give, and the
// reports that its call has left and ended: what 200 workers say in ten seconds, replayed.
// Less than 10 µs is the aim; some two thirds of it are JSON.
func BenchmarkPermit(b *testing.B) {
	for name, c := range map[string]struct {
		rate float64
		json bool
	}{"500 a second": {500_000, true}, "5,000 a second": {5_000_000, true}, "5,000 a second, without JSON": {5_000_000, false}} {
		b.Run(name, func(b *testing.B) {
			p := usual(1)
			p.storm, p.rate, p.length, p.from, p.loss = false, c.rate, 40*time.Second, 0, 0
			tape := record(b, p)
			b.ReportAllocs()
			b.ResetTimer()
			permits, messages := 0, 0
			for range b.N {
				n, m := tape.play(b, c.json)
				permits, messages = permits+n, messages+m
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(permits), "ns/permit")
			b.ReportMetric(float64(messages)/float64(permits), "messages/permit")
		})
	}
}

// A tape is what one keeper heard and decided.
type tape struct {
	config  Config
	entries []entry
}

// An entry is an ask that was heard, or a decision.
type entry struct {
	at    time.Time
	ask   *permit.Ask // nil: it is a decision
	bytes []byte
}

func record(b *testing.B, p plan) *tape {
	t := &tape{}
	p.taped = func(d *desk, a *permit.Ask) {
		e := entry{at: d.clock.at(d.o.l.now), ask: a}
		if a != nil {
			e.bytes, _ = json.Marshal(a)
		}
		t.entries = append(t.entries, e)
	}
	l := newLab(p)
	t.config = l.center.(*office).config(1)
	if r := l.run(); len(r.faults) > 0 {
		b.Fatal(r.faults)
	}
	return t
}

// play has a keeper hear the tape, and answers with how many permits it gave, in how many
// messages.
func (t *tape) play(b *testing.B, over bool) (permits, messages int) {
	k := New(t.config)
	for i := range t.entries {
		e := &t.entries[i]
		if e.ask == nil {
			out := k.Ready(e.at)
			messages += len(out.Gives)
			for j := range out.Gives {
				permits += len(out.Gives[j].Permits)
				if over {
					if _, err := json.Marshal(&out.Gives[j]); err != nil {
						b.Fatal(err)
					}
				}
			}
			continue
		}
		messages++
		a := *e.ask
		if over {
			a = permit.Ask{}
			if err := json.Unmarshal(e.bytes, &a); err != nil {
				b.Fatal(err)
			}
		}
		if err := k.Heard(e.at, a); err != nil {
			b.Fatal(err)
		}
	}
	return permits, messages
}
