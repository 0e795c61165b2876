package queue

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch/serve/internal/line"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func enter(t *testing.T, q *Queue, at line.Place) *Ticket {
	t.Helper()
	ticket, err := q.Enter("m", at)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func hasTurn(t *Ticket) bool {
	select {
	case <-t.Turn():
		return true
	default:
		return false
	}
}

// One request of a pool has its turn at a time; the next one has it when the call of that one has left, or when
// it gives up.
func TestTurns(t *testing.T) {
	q := New(Config{})
	defer q.Close()
	a, b, c := enter(t, q, line.Place{}), enter(t, q, line.Place{}), enter(t, q, line.Place{})
	if !hasTurn(a) || hasTurn(b) {
		t.Fatal("the first alone has its turn at the beginning")
	}
	if a.Left(); !hasTurn(b) || hasTurn(c) {
		t.Fatal("when the first has left, the second alone has its turn")
	}
	a.Left() // twice
	a.Done()
	if hasTurn(c) {
		t.Fatal("the end of the first call gives a second turn")
	}
	if b.Done(); !hasTurn(c) {
		t.Fatal("the second gave up, and the third has no turn")
	}
	if b.Done(); waiting(q) != 0 {
		t.Errorf("%d wait", waiting(q))
	}
	c.Done()
	other, err := q.Enter("other", line.Place{})
	if err != nil || !hasTurn(other) {
		t.Errorf("another pool: %v", err)
	}
	other.Done()
}

// A request that would leave too late is refused at once, with the forecast.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Pace: func(string) Pace { return Pace{Rate: 1} }})
		defer q.Close()
		for range 31 {
			defer enter(t, q, line.Place{Latest: time.Now().Add(30 * time.Second)}).Done()
		}
		_, err := q.Enter("m", line.Place{Latest: time.Now().Add(30 * time.Second)})
		late, is := errors.AsType[*LateError](err)
		if !is || late.Forecast.Before != 31 || late.Forecast.Wait != 31*time.Second {
			t.Fatalf("%v", err)
		}
		defer enter(t, q, line.Place{Latest: time.Now().Add(32 * time.Second)}).Done()
		if waiting(q) != 31 {
			t.Errorf("%d wait", waiting(q))
		}
	})
}

// A pool that has stopped, or rests for longer than a request waits, refuses it at once.
func TestNothingLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := errors.New("no quota left")
		pace := Pace{From: time.Now().Add(time.Hour)}
		q := New(Config{Pace: func(string) Pace { return pace }})
		defer q.Close()
		_, err := q.Enter("m", line.Place{Latest: time.Now().Add(time.Minute)})
		if late, is := errors.AsType[*LateError](err); !is || late.Forecast.Wait != time.Hour {
			t.Fatalf("%v", err)
		}
		first, second := enter(t, q, line.Place{}), enter(t, q, line.Place{})
		defer first.Done()
		defer second.Done()
		time.Sleep(1500 * time.Millisecond)
		q.onOwner(func() { pace = Pace{Stopped: quota} })
		if err := <-second.Refused(); !errors.Is(err, quota) {
			t.Errorf("%v", err)
		}
		if _, err := q.Enter("m", line.Place{}); !errors.Is(err, quota) {
			t.Errorf("%v", err)
		}
	})
}

// While a request waits it hears how long it will. It is refused when its time is up.
func TestNewsAndPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{})
		defer q.Close()
		first := enter(t, q, line.Place{})
		defer first.Done()
		began := time.Now()
		defer enter(t, q, line.Place{}).Done() // is more patient
		waits := enter(t, q, line.Place{Latest: began.Add(4500 * time.Millisecond)})
		defer waits.Done()
		if f := <-waits.News(); f.Before != 1 || f.Wait >= 0 || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), f)
		}
		if _, is := errors.AsType[*LateError](<-waits.Refused()); !is || time.Since(began) != 4500*time.Millisecond {
			t.Errorf("refused after %v", time.Since(began))
		}
	})
}

// Where nobody knows the pace, it is measured: then a request that would come too late is refused, and the forecasts are near.
func TestMeasuredPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Pace: func(string) Pace { return Pace{Rate: 100} }}) // more than there is
		defer q.Close()
		var all []*Ticket
		latest := time.Now().Add(95 * time.Second)
		for range 200 {
			all = append(all, enter(t, q, line.Place{Latest: latest}))
		}
		for _, x := range all[:60] {
			<-x.Turn()
			time.Sleep(500 * time.Millisecond)
			x.Left()
		}
		f := <-all[199].News()
		if f.Wait < 65*time.Second || f.Wait > 75*time.Second {
			t.Errorf("forecast %v for 139 at two a second", f)
		}
		_, err := q.Enter("m", line.Place{Latest: latest})
		if _, is := errors.AsType[*LateError](err); !is {
			t.Errorf("%v", err)
		}
		for _, x := range all {
			x.Done()
		}
	})
}

// While the limit is searched nobody is refused for a forecast.
func TestSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Pace: func(string) Pace { return Pace{Rate: 0.01, Searched: true} }})
		defer q.Close()
		var all []*Ticket
		for range 20 {
			all = append(all, enter(t, q, line.Place{Latest: time.Now().Add(30 * time.Second)}))
		}
		for _, x := range all {
			<-x.Turn()
			time.Sleep(time.Second)
			x.Done()
		}
	})
}

// Tokens are what a request costs, where they limit calls.
func TestTokensCount(t *testing.T) {
	q := New(Config{Pace: func(string) Pace { return Pace{ByTokens: true} }})
	defer q.Close()
	var order []string
	var all []*Ticket
	all = append(all, enter(t, q, line.Place{Client: "first", Cost: 100}))
	for range 12 {
		all = append(all, enter(t, q, line.Place{Client: "large", Cost: 1000}))
	}
	for range 40 {
		all = append(all, enter(t, q, line.Place{Client: "small", Cost: 100}))
	}
	for range 23 {
		for _, x := range all {
			if hasTurn(x) {
				order = append(order, x.request.Client)
				x.Left()
				x.Done()
				all = slices.DeleteFunc(all, func(y *Ticket) bool { return y == x })
				break
			}
		}
	}
	large := 0
	for _, name := range order {
		if name == "large" {
			large++
		}
	}
	if large < 2 || large > 4 {
		t.Errorf("of 23 calls %d are large ones, want about 2: %v", large, order)
	}
	for _, x := range all {
		x.Done()
	}
}

// Pools that nobody uses any more are not kept for ever.
func TestPoolsAreSwept(t *testing.T) {
	q := New(Config{Pace: func(string) Pace { return Pace{Rate: 1} }})
	defer q.Close()
	stays := enter(t, q, line.Place{})
	defer stays.Done()
	for i := range 5000 {
		x, err := q.Enter(fmt.Sprint(i), line.Place{})
		if err != nil {
			t.Fatal(err)
		}
		x.Done()
	}
	n := 0
	if q.onOwner(func() { n = len(q.pools) }); n > maxIdlePools {
		t.Errorf("%d pools are kept", n)
	}
	if next := enter(t, q, line.Place{}); hasTurn(next) {
		t.Error("the pool of a request with its turn was dropped")
	}
}

func TestDrainAndClose(t *testing.T) {
	q := New(Config{})
	a := enter(t, q, line.Place{Client: "a", MaxInFlight: 1})
	b := enter(t, q, line.Place{Client: "a", MaxInFlight: 1}) // may not go
	q.Drain()
	if err := <-b.Refused(); !errors.Is(err, ErrDrained) {
		t.Errorf("%v", err)
	}
	if _, err := q.Enter("m", line.Place{}); !errors.Is(err, ErrDrained) {
		t.Errorf("%v", err)
	}
	a.Left()
	q.Close()
	q.Close()
	a.Done()
	if _, err := q.Enter("m", line.Place{}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// Many come, go and give up at once; each place is given back.
func TestAllAtOnce(t *testing.T) {
	q := New(Config{Bound: line.Config{MaxWaiting: 1000}})
	defer q.Close()
	var wg sync.WaitGroup
	for i := range 2000 {
		wg.Go(func() {
			x, err := q.Enter(fmt.Sprint(i%3), line.Place{Client: fmt.Sprint(i % 7), MaxInFlight: i % 4, Class: line.Class(i % 3)})
			if err != nil {
				return
			}
			defer x.Done()
			if i%5 == 0 {
				return
			}
			<-x.Turn()
			x.Left()
		})
	}
	wg.Wait()
	if n := waiting(q); n != 0 {
		t.Errorf("%d wait", n)
	}
}

func BenchmarkTurn(b *testing.B) {
	q := New(Config{})
	defer q.Close()
	b.ReportAllocs()
	for b.Loop() {
		x, _ := q.Enter("m", line.Place{Client: "a"})
		<-x.Turn()
		x.Left()
		x.Done()
	}
}

// latest returns the newest forecast of a request.
func latest(t *Ticket) Forecast {
	<-t.News()
	return <-t.News()
}

// The measured pace forgets what is old, and the time in which nothing could leave.
func TestMeasuredPaceFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rests := make(chan time.Time, 1)
		rests <- time.Time{}
		q := New(Config{Pace: func(string) Pace {
			from := <-rests
			rests <- from
			return Pace{From: from}
		}})
		defer q.Close()
		var all []*Ticket
		for range 1000 {
			all = append(all, enter(t, q, line.Place{}))
		}
		for i, x := range all[:600] {
			<-x.Turn()
			time.Sleep(100 * time.Millisecond)
			if x.Left(); i < 300 {
				continue
			}
			time.Sleep(900 * time.Millisecond) // from now on it is slower by ten times
		}
		if f := latest(all[999]); f.Wait < 350*time.Second || f.Wait > 500*time.Second {
			t.Errorf("forecast %v for 400 at one a second", f)
		}
		<-rests
		rests <- time.Now().Add(10 * time.Minute)
		time.Sleep(10 * time.Minute)
		<-rests
		rests <- time.Time{}
		if f := latest(all[999]); f.Wait < 350*time.Second || f.Wait > 500*time.Second {
			t.Errorf("after a rest: forecast %v for 400 at one a second", f)
		}
		for _, x := range all {
			x.Done()
		}
	})
}

// A queue that is asked all the time renews its forecasts none the less.
func TestNewsOfABusyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{})
		defer q.Close()
		first, second := enter(t, q, line.Place{}), enter(t, q, line.Place{})
		defer first.Done()
		defer second.Done()
		for range 25 {
			time.Sleep(100 * time.Millisecond)
			enter(t, q, line.Place{}).Done()
		}
		if len(second.News()) == 0 {
			t.Error("no news in 2.5 s")
		}
	})
}

// A pace that falls while a request waits has it refused then, with the forecast, and not once its time is up. One that
// falls a little does not: it is an estimate.
func TestLateWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := 1.0
		q := New(Config{Pace: func(string) Pace { return Pace{Rate: rate} }})
		defer q.Close()
		defer enter(t, q, line.Place{}).Done() // has its turn
		began := time.Now()
		waits := enter(t, q, line.Place{Latest: began.Add(20 * time.Second)})
		defer waits.Done()
		fall := func(to float64) {
			q.onOwner(func() { rate = to })
			time.Sleep(2500 * time.Millisecond)
		}
		fall(0.055) // 18 s, of which 17.5 are left
		select {
		case err := <-waits.Refused():
			t.Fatalf("refused by an estimate: %v", err)
		default:
		}
		fall(0.02)
		select {
		case err := <-waits.Refused():
			if late, is := errors.AsType[*LateError](err); !is || late.Forecast.Before != 1 || late.Forecast.Wait != 50*time.Second {
				t.Errorf("%v", err)
			}
		default:
			t.Error("it still waits")
		}
	})
}

// A client whose last place in flight gets free goes on in each of its pools.
func TestPlaceOfAClientFreesAllItsPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{})
		defer q.Close()
		at := line.Place{Client: "a", MaxInFlight: 1}
		first, err := q.Enter("m", at)
		if err != nil || !hasTurn(first) {
			t.Fatal(err)
		}
		first.Left()
		second, err := q.Enter("other", at)
		if err != nil || hasTurn(second) {
			t.Fatalf("it has its turn over its bound, %v", err)
		}
		first.Done()
		if !hasTurn(second) {
			t.Error("it has no turn")
		}
		second.Done()
	})
}

// Where leave comes from afar, the calls of a short time have their turn together, and a slow limit still lets one wait
// for one other at most.
func TestCallsOfAShortTimeAskTogether(t *testing.T) {
	for rate, want := range map[float64]int{0: headsUnknownPace, math.Inf(1): headsUnknownPace, 0.1: 2, 8: 3, 1e9: maxHeadsAhead} {
		q := New(Config{Ahead: 250 * time.Millisecond, Pace: func(string) Pace { return Pace{Rate: rate} }})
		var all []*Ticket
		turns := func() (n int) {
			for _, ticket := range all {
				if hasTurn(ticket) {
					n++
				}
			}
			return n
		}
		for range maxHeadsAhead + 10 {
			all = append(all, enter(t, q, line.Place{}))
		}
		if n := turns(); n != want {
			t.Errorf("at %v calls a second %d have their turn, want %d", rate, n, want)
		}
		if all[0].Left(); turns() != want+1 {
			t.Errorf("at %v calls a second no other has its turn when one has left", rate)
		}
		q.Close()
	}
	q := New(Config{Ahead: time.Second, Pace: func(string) Pace { return Pace{Rate: 1, Searched: true} }})
	defer q.Close()
	for i := range headsUnknownPace {
		if !hasTurn(enter(t, q, line.Place{})) {
			t.Fatalf("a search is held back by the number of those that ask: %d", i)
		}
	}
}

// waiting returns the number of requests that wait.
func waiting(q *Queue) (n int) {
	q.onOwner(func() { n = q.line.Waiting() })
	return n
}
