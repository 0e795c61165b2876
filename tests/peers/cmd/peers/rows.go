package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/headrace/headrace/tests/peers/servers"
)

// row is a server and the target of the law there.
type row struct {
	name     string
	start    servers.Start
	ideal    ideal
	bound    bound
	items    int           // 10 to 40 s at the ideal, except where 2 s is its nature
	short    int           // items of a short run; 0 leaves the row out of it
	inFlight int           // --concurrency; 0 is the default of 64
	flags    []string      // further flags of the command
	weight   int64         // load on the machine: 1 is 50 to 80 calls a second
	align    time.Duration // start with a window of this length, as the ideal has no partial window
}

// whole is the weight of the machine: two cores bear eight rows of weight 1, or one of this.
const whole = 8

// The times and caps that several rows share. 8 at once of 100 ms are 80 a second. A crowd
// is the concurrency at which the strict servers were first measured: 2,560 a second, which
// is near what two cores bear.
const (
	soon  = 100 * time.Millisecond
	most  = 8
	crowd = 256
)

var rows = []row{
	{
		name: "chance 1 %", start: servers.Chance{Latency: soon, Refused: 0.01}.Start(),
		ideal: chance(0.01), bound: byChance(2.5, 0.01), items: 5000, short: 5000, inFlight: crowd, weight: whole,
	},
	{
		name: "chance 30 %", start: servers.Chance{Latency: soon, Refused: 0.3}.Start(),
		ideal: chance(0.3), bound: byChance(8, 0.3), items: 5000, short: 5000, inFlight: crowd, weight: whole,
	},
	// Five tries at an item, the default, would fail one in 100,000: a run in twenty.
	{
		name: "chance 10 % 429 (retry-after-ms 500), 10 % 500", start: servers.Chance{
			Latency: soon, Refused: 0.1, Faults: 0.1,
			Header: http.Header{"Retry-After-Ms": {"500"}},
		}.Start(), flags: []string{"--max-attempts", "9"},
		ideal: chance(0.2), bound: byChance(5, 0.1), items: 5000, inFlight: crowd, weight: whole,
	},
	{
		name: "chance 1 %, Retry-After: -5", start: servers.Chance{
			Latency: soon, Refused: 0.01,
			Header: http.Header{"Retry-After": {"-5"}},
		}.Start(),
		ideal: chance(0.01), bound: byChance(2.5, 0.01), items: 5000, inFlight: crowd, weight: whole,
	},

	{name: "at most 8 in flight, 200 ms", start: servers.AtMost(8, 2*soon), ideal: capped(8, 2*soon), bound: learned, items: 1000, short: 500, weight: 1},
	{
		name: "at most 64 in flight, 1 s", start: servers.AtMost(64, time.Second), ideal: capped(64, time.Second), bound: learned,
		items: 2000, short: 1000, inFlight: crowd, weight: 1,
	},

	{
		name: "120 a minute, OpenAI's headers", start: servers.Bucket{PerMinute: 120, Saved: 1, Latency: soon, Headers: true}.Start(),
		ideal: paced(2, 1, soon), bound: learned, items: 100, short: 30, weight: 1,
	},
	{
		name: "200/s told", start: servers.Bucket{PerMinute: 12000, Saved: 200, Latency: soon}.Start(), flags: []string{"--rpm", "12000"},
		ideal: paced(200, 200, soon), bound: known, items: 5000, short: 2500, weight: 3,
	},
	{
		name: "200/s in headers", start: servers.Bucket{PerMinute: 12000, Saved: 200, Latency: soon, Headers: true}.Start(),
		ideal: paced(200, 200, soon), bound: known, items: 5000, short: 2500, weight: 3,
	},
	{
		name: "200/s silent", start: servers.Bucket{PerMinute: 12000, Saved: 200, Latency: soon}.Start(),
		ideal: paced(200, 200, soon), bound: learned, items: 5000, short: 2500, weight: 3,
	},

	nginx("nginx limit_req 50/s, 503", "limit_req zone=req;", reqPaced(0), 1000, 500),
	nginx("nginx limit_req 50/s burst 20 nodelay, 503", "limit_req zone=req burst=20 nodelay;", reqPaced(20), 1000, 0),
	nginx("nginx limit_req 50/s burst 20 nodelay, 429", "limit_req zone=req burst=20 nodelay; limit_req_status 429;", reqPaced(20), 1000, 500),
	nginx("nginx limit_req 50/s burst 20 delayed, 503", "limit_req zone=req burst=20;", reqPaced(0), 1000, 500),
	nginx("nginx limit_req 50/s burst 20 delayed, 429", "limit_req zone=req burst=20; limit_req_status 429;", reqPaced(0), 1000, 0),
	nginx("nginx limit_conn 8, 503", "limit_conn conn 8;", capped(most, soon), 1600, 800),
	nginx("nginx limit_conn 8, 429", "limit_conn conn 8; limit_conn_status 429;", capped(most, soon), 1600, 0),

	haproxy("HAProxy 50 in 1 s, 503", stick(503), reqPaced(0), 1000, 0),
	haproxy("HAProxy 50 in 1 s, 429", stick(429), reqPaced(0), 1000, 500),
	{
		name: "HAProxy maxconn 8, queue", start: servers.HAProxy{MaxConn: most, Latency: soon}.Start(),
		ideal: capped(most, soon), bound: bound{learned.ratio, 0}, items: 1600, short: 800, weight: 1,
	},
	// It refuses at once, so that only answers use up the concurrency: 500/s.
	{
		name: "HAProxy chance 10 %", start: servers.HAProxy{Rules: "\thttp-request deny deny_status 429 if { rand(100) lt 10 }", Latency: soon}.Start(),
		ideal: capped(50, soon), bound: byChance(learned.ratio, 0.1), items: 5000, short: 2500, inFlight: 50, weight: 5,
	},

	{name: "throttled 50/s burst 20", start: servers.GCRA(50, 20, soon), ideal: reqPaced(20), bound: learned, items: 1000, short: 500, weight: 1},
	{name: "chi Throttle(8)", start: servers.Throttle(most, soon), ideal: capped(most, soon), bound: learned, items: 1600, short: 800, weight: 1},
	// With windows the ideal is their average pace. A client that spends each window at once
	// may be faster, as it does not wait for the end of the last one.
	{
		name: "httprate 300 in 6 s", start: servers.SlidingWindow(300, 6*time.Second, soon),
		ideal: reqPaced(0), bound: learned, items: 1500, short: 600, weight: 1, align: 6 * time.Second,
	},
	{
		name: "ulule/limiter 500 in 10 s", start: servers.FixedWindow(500, 10*time.Second, soon),
		ideal: reqPaced(0), bound: learned, items: 1500, short: 1000, weight: 1,
	},

	// 8 at once of 200 ms are 40 a second. A queue of 1,000, its default, is never full.
	{
		name: "as llm-d-inference-sim, 10 % rate_limit injected", start: servers.LLMD{
			MaxNumSeqs: 8, MaxWaitingQueueLength: 1000,
			TimeToFirstToken: 2 * soon, FailureInjectionRate: 10,
		}.Start(),
		ideal: capped(8, 2*soon), bound: byChance(learned.ratio, 0.1), items: 800, short: 400, weight: 1,
	},
	{
		name: "as llm-d-inference-sim, queue of 8 full", start: servers.LLMD{MaxNumSeqs: 8, MaxWaitingQueueLength: 8, TimeToFirstToken: 2 * soon}.Start(),
		ideal: capped(8, 2*soon), bound: learned, items: 800, short: 400, weight: 1,
	},
	{
		name: "as llm-d-inference-sim, 10 % injected and queue of 8 full", start: servers.LLMD{
			MaxNumSeqs: 8, MaxWaitingQueueLength: 8,
			TimeToFirstToken: 2 * soon, FailureInjectionRate: 10,
		}.Start(),
		ideal: capped(8, 2*soon), bound: bound{learned.ratio, 0.25}, items: 800, weight: 1,
	}, // both shares
}

// reqPaced is 50 a second with one call, and so many more, saved up.
func reqPaced(burst float64) ideal { return paced(50, 1+burst, soon) }

func nginx(name, limit string, best ideal, items, short int) row {
	return row{name: name, start: servers.Nginx{Limit: limit, Latency: soon}.Start(), ideal: best, bound: learned, items: items, short: short, weight: 1}
}

func haproxy(name, rules string, best ideal, items, short int) row {
	return row{name: name, start: servers.HAProxy{Rules: rules, Latency: soon}.Start(), ideal: best, bound: learned, items: items, short: short, weight: 1}
}

// stick refuses the 51st call of a sliding second. Refused calls count as well.
func stick(status int) string {
	const rules = "\tstick-table type ip size 10 expire 60s store http_req_rate(1s)\n" +
		"\thttp-request track-sc0 src\n" +
		"\thttp-request deny deny_status %d if { sc_http_req_rate(0) gt 50 }"
	return fmt.Sprintf(rules, status)
}

// choose leaves out the rows that the flags exclude, and sets each row's number of items.
func choose(p plan) (some []row) {
	for _, r := range rows {
		if p.short {
			r.items, r.bound = r.short, r.bound.wider()
		}
		if r.items > 0 && (p.only == nil || p.only.MatchString(r.name)) {
			some = append(some, r)
		}
	}
	return some
}
