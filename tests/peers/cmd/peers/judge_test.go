package main

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/tests/peers/servers"
)

func TestIdeals(t *testing.T) {
	want := map[string]float64{
		"chance 1 %":                     2.1,
		"chance 30 %":                    2.9,
		"at most 8 in flight, 200 ms":    25,
		"at most 64 in flight, 1 s":      32, // the last round is half empty
		"120 a minute, OpenAI's headers": 49.6,
		"200/s told":                     24.1,
		"nginx limit_req 50/s, 503":      20.1,
		"chi Throttle(8)":                20,
	}
	for _, r := range rows {
		if w, is := want[r.name]; is && math.Abs(r.ideal(r.items)-w) > 0.05 {
			t.Errorf("%s: %.2f s, want %.1f", r.name, r.ideal(r.items), w)
		}
		delete(want, r.name)
	}
	if len(want) > 0 {
		t.Errorf("no rows: %v", want)
	}
}

func TestJudge(t *testing.T) {
	r := row{name: "a", ideal: paced(10, 0, 0), bound: bound{1.2, 0.1}, items: 100}
	whole := said{Event: "summary", Succeeded: 100, Throttled: 3, Proved: true}
	for _, c := range []struct {
		s       said
		took    time.Duration
		counted servers.Tally
		want    string
		unlucky bool
	}{
		{whole, 11 * time.Second, servers.Tally{Answered: 100, Refused: 10}, "ok", false},
		{whole, 13 * time.Second, servers.Tally{Answered: 100, Refused: 11}, "misses: ratio over 1.20, over 10 refused", false},
		{whole, 28 * time.Second, servers.Tally{Answered: 100, Refused: 33}, "FAIL: ratio over 2.75, over 32 refused", true},
		{whole, 28 * time.Second, servers.Tally{Answered: 101}, "FAIL: ratio over 2.75, 101 answers for 100 items", false},
		{whole, 11 * time.Second, servers.Tally{Answered: 101}, "FAIL: 101 answers for 100 items", false},
		{said{Succeeded: 99, Proved: true}, 11 * time.Second, servers.Tally{Answered: 99}, "FAIL: 99 of 100 done", false},
		{said{Succeeded: 40, Proved: true}, limit(r), servers.Tally{Answered: 40}, "FAIL: 40 of 100 done, ratio over 2.75", true},
		{said{Succeeded: 40, Failed: 1, Proved: true}, limit(r), servers.Tally{Answered: 40}, "FAIL: 40 of 100 done, ratio over 2.75", false},
		{said{Succeeded: 40, Proved: true}, limit(r), servers.Tally{Answered: 41}, "FAIL: 40 of 100 done, ratio over 2.75", false},
	} {
		o := judge(r, c.s, c.took, c.counted)
		if got := o.verdict(); got != c.want || o.unlucky(r) != c.unlucky {
			t.Errorf("got %q, unlucky %v; want %q, %v", got, o.unlucky(r), c.want, c.unlucky)
		}
	}
}

func TestChoose(t *testing.T) {
	short := plan{only: regexp.MustCompile("nginx"), short: true}
	if got := len(choose(plan{})); got != len(rows) {
		t.Errorf("%d of %d rows", got, len(rows))
	}
	some := choose(short)
	for _, r := range some {
		if !strings.Contains(r.name, "nginx") || r.items != r.short || r.bound != learned.wider() {
			t.Errorf("chose %s: %d items, %+v", r.name, r.items, r.bound)
		}
	}
	if len(some) == 0 {
		t.Error("chose nothing")
	}
}

func TestSummary(t *testing.T) {
	s, last := summary([]byte("{\"event\":\"notice\"}\nplain words\n{\"event\":\"summary\",\"succeeded\":7,\"throttled\":2,\"proved\":true}\nto go on: headrace run\n"))
	if s.Succeeded != 7 || s.Throttled != 2 || !s.Proved || last != "to go on: headrace run" {
		t.Errorf("got %+v, %q", s, last)
	}
}
