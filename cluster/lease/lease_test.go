package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/purity"
)

const term = 3 * time.Second

var (
	noon    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	errLost = errors.New("no answer")
)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * 1e9)) }

// only is the one action of an answer.
func only[A Action](t *testing.T, r Ready) A {
	t.Helper()
	var none A
	if len(r.Do) == 0 {
		t.Fatalf("nothing to do, until %v", r.WakeAt.Sub(noon))
	}
	a, is := r.Do[0].(A)
	if !is {
		t.Fatalf("%#v, want a %T", r.Do[0], none)
	}
	return a
}

// keeperAt is a keeper of epoch 7, whose latest write has revision 6, from 3.4 s on.
func keeperAt(t *testing.T) *Lease {
	t.Helper()
	l := New(Config{Who: "a", Term: term})
	for tenth := range 34 {
		now := at(float64(tenth) / 10)
		r := l.Ready(now)
		if len(r.Do) == 0 {
			continue
		}
		w, is := r.Do[0].(Write)
		if !is {
			l.Step(now, ReadEnded{Found: true, Revision: 5, Value: Value{Holder: "x", Counter: 9, Epoch: 6, Snapshot: json.RawMessage(`{"x":1}`)}})
			continue
		}
		if w.Revision != 5 {
			t.Fatalf("written over revision %d", w.Revision)
		}
		l.Step(now, WriteEnded{Revision: 6})
		only[Mint](t, l.Ready(now))
		l.Step(now, MintEnded{Epoch: 7})
		return l
	}
	t.Fatal("the lease was never written")
	return nil
}

// A candidate waits for more than a term before it takes the lease, takes over what the one before
// knew, and is keeper until 0.99 terms after it wrote.
func TestTakesOver(t *testing.T) {
	l := keeperAt(t)
	epoch, until, is := l.Keeper(at(3.5))
	if !is || epoch != 7 || string(l.Before()) != `{"x":1}` {
		t.Errorf("%d %v %s", epoch, is, l.Before())
	}
	if took := until.Sub(l.sent); took != 2970*time.Millisecond {
		t.Errorf("keeper for %v", took)
	}
	if wait := l.sent.Sub(noon); wait < 3030*time.Millisecond || wait > 3400*time.Millisecond {
		t.Errorf("it has waited for %v", wait)
	}
	if _, _, is := l.Keeper(until); is {
		t.Error("it is keeper when its time has run out")
	}
}

// A candidate that yields waits for longer.
func TestYields(t *testing.T) {
	l := New(Config{Who: "a", Term: term, Yields: true})
	l.Step(noon, ReadEnded{})
	if l.ripe(at(3.5)) || !l.ripe(at(3.9)) {
		t.Error("it does not wait for a quarter of a term more")
	}
}

// A lost answer is found again by counter, and the time runs from when that write was sent.
func TestLostAnswer(t *testing.T) {
	l := keeperAt(t)
	w := only[Write](t, l.Ready(at(5)))
	l.Step(at(5.5), WriteEnded{Err: errLost})
	only[Read](t, l.Ready(at(5.5)))
	l.Step(at(5.6), ReadEnded{Found: true, Revision: 9, Value: w.Value})
	if _, until, is := l.Keeper(at(5.6)); !is || !until.Equal(at(5).Add(2970*time.Millisecond)) {
		t.Errorf("%v until %v", is, until.Sub(noon))
	}
	if w := only[Write](t, l.Ready(at(5.8))); w.Revision != 9 || w.Value.Epoch != 7 {
		t.Errorf("%+v", w)
	}
}

// A write that arrives late, after the next was sent, does not cost the lease; nor does it lengthen it.
func TestLateWrite(t *testing.T) {
	l := keeperAt(t)
	_, until, _ := l.Keeper(at(3.5))
	late := only[Write](t, l.Ready(at(5)))
	l.Step(at(5.1), WriteEnded{Err: errLost})
	only[Read](t, l.Ready(at(5.1)))
	l.Step(at(5.2), ReadEnded{Found: true, Revision: 6, Value: Value{Holder: "a", Counter: late.Value.Counter - 1, Epoch: 7}})
	only[Write](t, l.Ready(at(5.5)))
	l.Step(at(5.6), WriteEnded{Taken: true})
	only[Read](t, l.Ready(at(5.6)))
	l.Step(at(5.7), ReadEnded{Found: true, Revision: 7, Value: late.Value})
	if _, u, is := l.Keeper(at(5.7)); !is || !u.Equal(until) {
		t.Errorf("%v until %v", is, u.Sub(noon))
	}
	if w := only[Write](t, l.Ready(at(6))); w.Revision != 7 {
		t.Errorf("over revision %d", w.Revision)
	}
}

// Who finds another's value, or hears of a later epoch, is keeper no more.
func TestLoses(t *testing.T) {
	for name, lose := range map[string]func(*Lease){
		"taken": func(l *Lease) {
			l.Ready(at(5))
			l.Step(at(5), WriteEnded{Taken: true})
			l.Ready(at(5))
			l.Step(at(5), ReadEnded{Found: true, Revision: 8, Value: Value{Holder: "b", Counter: 1}})
		},
		"outbid": func(l *Lease) { l.Step(at(5), EpochHeard{8}) },
	} {
		l := keeperAt(t)
		lose(l)
		if _, _, is := l.Keeper(at(5)); is || l.holder {
			t.Errorf("%s: still keeper", name)
		}
	}
	l := keeperAt(t)
	l.Step(at(5), EpochHeard{7})
	if _, _, is := l.Keeper(at(5)); !is {
		t.Error("its own epoch ended it")
	}
}

// Who has lapsed and may write over its own revision goes on, with the epoch that it had.
func TestLapsedGoesOn(t *testing.T) {
	l := keeperAt(t)
	w := only[Write](t, l.Ready(at(20)))
	if w.Revision != 6 || w.Value.Epoch != 7 {
		t.Errorf("%+v", w)
	}
	l.Step(at(20.1), WriteEnded{Revision: 7})
	if epoch, _, is := l.Keeper(at(20.1)); !is || epoch != 7 {
		t.Errorf("%d %v", epoch, is)
	}
}

// An epoch that is minted too low is minted again; one that cannot be is tried again.
func TestMintsAgain(t *testing.T) {
	l := keeperAt(t)
	l.epoch = 0
	l.Step(at(4.2), EpochHeard{12})
	only[Mint](t, l.Ready(at(4.2)))
	l.Step(at(4.3), MintEnded{Err: errLost})
	l.Ready(at(4.3))
	if r := l.Ready(at(4.35)); len(r.Do) > 0 || r.WakeAt.After(at(4.61)) {
		t.Errorf("%+v", r)
	}
	only[Mint](t, l.Ready(at(4.7)))
	l.Step(at(4.7), MintEnded{Epoch: 11})
	l.Step(at(4.7), ReadEnded{Err: errLost})
	found := false
	for _, a := range l.Ready(at(4.7)).Do {
		_, is := a.(Mint)
		found = found || is
	}
	if !found {
		t.Error("an epoch below one that was heard of was taken")
	}
}

// A value is read as it was written. A snapshot that is no JSON is left out, and a foreign text is not a value.
func TestValue(t *testing.T) {
	for _, v := range []Value{{Holder: "a", Counter: 3, Epoch: 4, Snapshot: json.RawMessage(`{"b":[1]}`)}, {Holder: "b"}} {
		got, ok := Parse(v.Marshal())
		if !ok || fmt.Sprint(got) != fmt.Sprint(v) {
			t.Errorf("%v, want %v", got, v)
		}
	}
	if got, ok := Parse(Value{Holder: "a", Snapshot: json.RawMessage(`{`)}.Marshal()); !ok || got.Snapshot != nil {
		t.Errorf("%v %v", got, ok)
	}
	for _, text := range []string{"", "{}", "[]", `{"counter":1}`} {
		if _, ok := Parse([]byte(text)); ok {
			t.Errorf("%s was taken", text)
		}
	}
}

// standsAgain returns the time at which a candidate that is not keeper writes the lease, if its revision stays the
// same.
func standsAgain(t *testing.T, l *Lease, from, until float64) (seconds float64) {
	t.Helper()
	for tenth := int(from * 10); tenth < int(until*10); tenth++ {
		now := at(float64(tenth) / 10)
		for _, a := range l.Ready(now).Do {
			switch a.(type) {
			case Read:
				l.Step(now, ReadEnded{Found: true, Revision: 90, Value: Value{Holder: "x", Counter: 1, Epoch: 9}})
			case Write:
				return float64(tenth) / 10
			}
		}
	}
	return 0
}

// The order of events: a keeper writes; it hears of a later epoch, and is keeper no more; then its write fails. It stands
// again when the lease is nobody's: a write of one that holds nothing leaves nothing in doubt.
func TestStandsAgainAfterALateAnswer(t *testing.T) {
	for _, end := range []WriteEnded{{Err: errLost}, {Taken: true}, {Revision: 8}} {
		l := keeperAt(t)
		now := at(4.2)
		only[Write](t, l.Ready(now))
		l.Step(now, EpochHeard{Epoch: 9})
		l.Step(now, end)
		if when := standsAgain(t, l, 4.3, 12); when < 7 || when > 8.5 {
			t.Errorf("%+v: it stands again at %v s", end, when)
		}
	}
}

// A holder that cannot mint, as its way to the store is broken, leaves the lease to others before it keeps them from it for
// long, and stands again later: perhaps nobody else is there.
func TestLeavesWhereItCannotMint(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		l := New(Config{Who: "a", Term: term})
		wrote, left := 0.0, 0.0
		for tenth := range 300 {
			now := at(float64(tenth) / 10)
			for _, a := range l.Ready(now).Do {
				switch a.(type) {
				case Read:
					l.Step(now, ReadEnded{Found: true, Revision: 5, Value: Value{Holder: "x", Counter: 9, Epoch: 6}})
				case Write:
					wrote = float64(tenth) / 10
					l.Step(now, WriteEnded{Revision: 5})
				case Mint:
					if !hangs {
						l.Step(now, MintEnded{Err: errLost})
					}
				}
			}
			if wrote > 0 && !l.holder && left == 0 {
				left = float64(tenth) / 10
			}
		}
		if lasts := left - 3.1; lasts < 6 || lasts > 10 {
			t.Errorf("hangs %v: it leaves at %v s", hangs, left)
		}
		if wrote < left+term.Seconds() {
			t.Errorf("hangs %v: it left at %v s, and wrote last at %v s", hangs, left, wrote)
		}
	}
}

// Where there never was a keeper nobody waits for the end of one's time; but what was seen may be old: only the first
// epoch of all makes a keeper at once.
func TestTheFirstKeeperWaitsForNobody(t *testing.T) {
	for epoch, want := range map[uint64]bool{1: true, 2: false} {
		l := New(Config{Who: "a", Term: term, Yields: true})
		if do := l.Ready(at(0)).Do; len(do) != 2 || do[1] != (FindEpoch{}) {
			t.Fatalf("it begins with %v", do)
		}
		l.Step(at(0), EpochHeard{})
		l.Step(at(0.01), ReadEnded{})
		only[Write](t, l.Ready(at(0.01)))
		l.Step(at(0.02), WriteEnded{Revision: 1})
		only[Mint](t, l.Ready(at(0.02)))
		l.Step(at(0.03), MintEnded{Epoch: epoch})
		if _, _, is := l.Keeper(at(0.03)); is != want {
			t.Errorf("by epoch %d it is keeper: %v", epoch, is)
		}
		if want {
			continue
		}
		only[Read](t, l.Ready(at(1)))
		l.Step(at(1), ReadEnded{Found: true, Revision: 1, Value: Value{Holder: "a", Counter: 1}})
		for tenth := range 30 { // a term from when it saw what stands there
			if r := l.Ready(at(1 + float64(tenth)/10)); len(r.Do) > 0 {
				only[Read](t, r)
				l.Step(at(1+float64(tenth)/10), ReadEnded{Found: true, Revision: 1, Value: Value{Holder: "a", Counter: 1}})
			}
		}
	}
}

// A process waits if it finds that there was a keeper, or that something stands in the lease, whatever else it has
// heard.
func TestOnlyTheFirstKeeperIsInAHurry(t *testing.T) {
	for name, facts := range map[string][]Fact{
		"an epoch":              {EpochHeard{Epoch: 3}, ReadEnded{}},
		"nobody can tell":       {ReadEnded{}},
		"a lease":               {EpochHeard{}, ReadEnded{Found: true, Revision: 4, Value: Value{Holder: "x"}}},
		"an epoch after it":     {ReadEnded{}, EpochHeard{Epoch: 3}},
		"the bus says nothing":  {EpochHeard{}, ReadEnded{Err: errLost}},
		"a later epoch, and no": {EpochHeard{Epoch: 3}, EpochHeard{}, ReadEnded{}},
	} {
		l := New(Config{Who: "a", Term: term})
		l.Ready(at(0))
		for _, f := range facts {
			l.Step(at(0.01), f)
		}
		for _, a := range l.Ready(at(0.5)).Do {
			if _, is := a.(Write); is {
				t.Errorf("%s: it writes at once", name)
			}
		}
	}
}

// This is all that a lease may know of the world: nothing of it can start something, wait for something, ask for the
// time, or draw lots that it was not given.
func TestPure(t *testing.T) {
	purity.Check(t, 2,
		"encoding/json", "time",
	)
}
