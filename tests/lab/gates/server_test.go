package gates

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
)

func server(c Config) *Server {
	c.Answers, c.Refusal, c.Named = Answers{Median: time.Second}, 20*time.Millisecond, -1
	if c.Status == "" {
		c.Status = sim.RateLimited
	}
	return NewServer(c)
}

func at(d time.Duration) time.Time { return lab.Start.Add(d) }

// A call is charged by all gates or by none.
func TestAllOrNone(t *testing.T) {
	narrow, wide := NewBucketOf(Steady(1), 1), NewBucketOf(Steady(1), 10)
	s := server(Config{Gates: []Gate{wide, narrow}})
	for range 5 {
		s.Decide(at(0), sim.Call{})
	}
	if wide.level != 9 || s.Admitted != 1 || s.Refused != 4 || s.Imposed != 0 {
		t.Errorf("level %v, %+v", wide.level, s.Books)
	}
}

// A refusal is imposed if chance alone refused it.
func TestImposed(t *testing.T) {
	s := server(Config{Gates: []Gate{NewShed(1, 1), NewBucketOf(Steady(1), 2)}, Seed: 1})
	s.Decide(at(0), sim.Call{})
	s.Gates[1].Take(0, 0, 0)
	s.Gates[1].Take(0, 0, 0)
	s.Decide(at(0), sim.Call{})
	if s.Refused != 2 || s.Imposed != 1 {
		t.Errorf("%+v", s.Books)
	}
}

// The neighbour is judged, and is nobody's in our books.
func TestNeighbourIsNotBooked(t *testing.T) {
	var calls []sim.Call
	spy := provider(func(now time.Time, c sim.Call) sim.Verdict {
		calls = append(calls, c)
		return sim.Verdict{Kind: sim.Accepted, Latency: time.Millisecond}
	})
	w := lab.World{
		Batch: lab.Batch{Items: 1, Concurrency: 1, Workers: 1}, Provider: spy, Hop: time.Second,
		Neighbour: lab.Neighbour{PerSecond: 100}, Stop: time.Minute,
	}
	w.Run(lab.Headrace(limiter.Model)(w.Batch, 1))
	s := server(Config{Gates: []Gate{NewBucketOf(Steady(0.001), 1)}})
	ours := 0
	for _, c := range calls {
		if !lab.FromNeighbour(c) {
			ours++
		}
		s.Decide(at(0), c)
	}
	if len(calls) < 50 || ours != 1 || s.Admitted+s.Refused != 1 {
		t.Errorf("%d calls, %d ours, %+v", len(calls), ours, s.Books)
	}
	breaking := server(Config{Breaks: 1})
	for _, c := range calls {
		breaking.Decide(at(0), c)
	}
	if breaking.Broken != 1 {
		t.Errorf("a server that breaks each call: %+v", breaking.Books)
	}
}

type provider func(time.Time, sim.Call) sim.Verdict

func (p provider) Decide(now time.Time, c sim.Call) sim.Verdict { return p(now, c) }

// Headers tell of the first gate of each kind, after the call.
func TestHeaders(t *testing.T) {
	tokens := NewBucket(Steady(100), time.Minute)
	tokens.Tokens = true
	s := server(Config{
		Gates:   []Gate{NewShed(0, 1), NewBucket(Steady(2), 5*time.Second), tokens, NewWindow(600, time.Minute)},
		Headers: true, Retry: true,
	})
	v := s.Decide(at(0), sim.Call{Tokens: 50})
	if !v.HasHeaders || v.Requests.Limit != 120 || v.Requests.Remaining != 9 || v.Requests.Reset.Round(time.Millisecond) != 500*time.Millisecond {
		t.Errorf("requests %+v", v.Requests)
	}
	if v.Tokens.Limit != 6000 || v.Tokens.Remaining != 5950 {
		t.Errorf("tokens %+v", v.Tokens)
	}
	for range 9 {
		s.Decide(at(0), sim.Call{})
	}
	if v = s.Decide(at(0), sim.Call{}); v.Kind != sim.RateLimited || v.RetryAfter != time.Second || !v.HasRetryAfter {
		t.Errorf("refusal %+v", v)
	}
}

// A window's reset is its end, and liars say what their names say.
func TestWindowsAndLies(t *testing.T) {
	s := server(Config{Gates: []Gate{NewWindow(100, 10*time.Second)}, Headers: true})
	if q := s.Decide(at(13*time.Second), sim.Call{}).Requests; q.Limit != 600 || q.Remaining != 99 || q.Reset != 7*time.Second {
		t.Errorf("%+v", q)
	}
	truth := sim.Quota{Limit: 600, Remaining: 40, Reset: time.Second}
	if q := NeverFalls(0, truth, 7); q.Remaining != 600 || q.Limit != 600 {
		t.Errorf("never falls: %+v", q)
	}
	if q := TenTimes(0, truth, 7); q.Limit != 6000 || q.Remaining != 5990 {
		t.Errorf("ten times: %+v", q)
	}
	if q := DaysLimit(time.Hour, truth, 7); q.Limit != 864000 || q.Remaining != 863993 || q.Reset != 23*time.Hour {
		t.Errorf("day's limit: %+v", q)
	}
}

// An outage is a 503 whatever a refusal is, and charges nothing; what breaks is
// charged and takes its time.
func TestOutageAndBreaks(t *testing.T) {
	s := server(Config{Outages: []Outage{{From: time.Second, For: time.Second}}, Breaks: 1})
	if v := s.Decide(at(0), sim.Call{}); v.Kind != sim.ServerError || v.Latency != time.Second {
		t.Errorf("%+v", v)
	}
	if v := s.Decide(at(time.Second), sim.Call{}); v.Kind != sim.Overloaded || v.Latency != 20*time.Millisecond {
		t.Errorf("%+v", v)
	}
	s.Decide(at(2*time.Second), sim.Call{})
	if s.Broken != 2 || s.Down != 1 || s.Admitted != 2 || s.Refused != 0 {
		t.Errorf("%+v", s.Books)
	}
}
