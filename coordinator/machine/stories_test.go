package machine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/headrace/headrace/limiter"
)

// Each file in testdata tells what the machine does in one situation, step by
// step. Run with -rewrite to write the answers anew; then read the difference.
func TestStories(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".txt"), func(t *testing.T) { play(t, "testdata/"+f.Name()) })
	}
}

// play plays one script. Jitter is off unless the script asks for it, so that
// the waits in it are round.
func play(t *testing.T, path string) {
	s := newStory(t, Config{LongWait: -1, Lane: LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1}}})
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		s.t = t
		do, known := commands[d.Cmd]
		if !known {
			t.Fatalf("%s: no such command: %s", d.Pos, d.Cmd)
		}
		words := parse(t, d)
		if do(s, words); d.Cmd != "machine" && d.Cmd != "clock-back" {
			s.pass()
		}
		if said := s.said(); said != "" || setUp[d.Cmd] {
			return said
		}
		return "nothing happens\n"
	})
}

// setUp are the commands of which nothing is expected to follow.
var setUp = map[string]bool{"machine": true, "restart": true, "open": true, "define": true, "limits": true}

// The commands. Each is one sentence about the world; what follows from it is
// decided when the command is over.
var commands = map[string]func(*story, words){
	"machine": func(s *story, w words) { // idle=D long-wait=D first-answer=D patience=D answered-before=yes: another machine, and no calls in flight
		s.m = New(Config{
			IdleTTL: w.span("idle"), LongWait: cmp.Or(w.span("long-wait"), -1), FirstAnswer: w.span("first-answer"),
			OutagePatience: w.span("patience"), AnsweredBefore: w.has("answered-before"), Lane: w.lane(),
		})
		s.server = nil
		clear(s.lent)
	},
	"open": func(s *story, w words) { // run=N concurrency=N item-timeout=D keep-going=yes pool=(name,lane,…) fallback=(name,lane,…) prefer=(name,after,lane,…,/,lane,…) spill=D weights=(N,…) budget=USD spent=USD price=USD
		s.m.Step(s.now, RunOpened(w.run(), w.budget(RunConfig{
			Concurrency: int(w.number("concurrency")), ItemTimeout: w.span("item-timeout"), KeepGoing: w.has("keep-going"), Pools: w.pools(),
		})))
	},
	"offer":     func(s *story, w words) { s.offer(w) }, // COUNT run=N pool=NAME tokens=N
	"end-input": func(s *story, w words) { s.m.Step(s.now, InputEnded(w.run())) },
	"restart": func(s *story, w words) { // after=D emptied=yes …: that process ends with its calls, and another begins with what was saved
		saved := s.m.SaveLanes(s.now)
		s.now = s.now.Add(w.span("after"))
		for name, k := range saved {
			if w.has("emptied") { // for who follows while calls of that process may yet be on their way
				saved[name] = k.Empty()
			}
		}
		s.m = New(Config{Lane: w.lane(), Memory: saved})
		s.server, s.wake = nil, time.Time{}
		clear(s.lent)
	},
	"answer": func(s *story, w words) { // ITEMS after=D tokens=N headers=(LIMIT,REMAINING,RESET) cost=USD: the results are good
		s.end(w, Settled, Outcome{Signal: Succeeded, Measured: w.has("tokens"), Actual: w.cost(), Sightings: w.sightings(), Spent: w.usd("cost")})
	},
	"reject": func(s *story, w words) { // ITEMS after=D alike=N first=N: 400, for good
		end := Settled
		if w.has("alike") {
			end = HandedOver
		}
		s.end(w, end, Outcome{Signal: Answered, Alike: uint32(w.number("alike")), First: uint8(w.number("first")), Cause: w.causeOr(nil)})
	},
	"refuse": func(s *story, w words) { // ITEMS after=D retry-after=D headers=(LIMIT,REMAINING,RESET) on=tokens cause=WORD: 429
		s.end(w, HandedOver, Outcome{
			Signal: Throttled, Directed: w.has("retry-after"), RetryAfter: w.span("retry-after"),
			Sightings: w.sightings(), On: dimensionNamed[w.text("on", "")], Cause: w.causeOr(nil),
		})
	},
	"overload": func(s *story, w words) { // ITEMS after=D retry-after=D: 503
		s.end(w, HandedOver, Outcome{Signal: Overloaded, Directed: w.has("retry-after"), RetryAfter: w.span("retry-after")})
	},
	"fail": func(s *story, w words) { // ITEMS after=D retry-after=D way=N cause=WORD unsent=yes last=yes doubtful=yes: 500, tried again
		s.end(w, HandedOver, Outcome{
			Signal: Failed, Directed: w.has("retry-after"), RetryAfter: w.span("retry-after"), Way: uint8(w.number("way")), Cause: w.causeOr(nil),
			Unsent: w.has("unsent"), Last: w.has("last"), Doubtful: w.has("doubtful"),
		})
	},
	"forbid": func(s *story, w words) { // ITEMS after=D first=N later=N cause=WORD: refused for good, and not said who is
		s.end(w, HandedOver, Outcome{Signal: Exhausted, Alike: 1, First: uint8(w.number("first")), Later: uint8(w.number("later")), Cause: w.causeOr(nil)})
	},
	"give-up": func(s *story, w words) { s.end(w, Settled, Outcome{Signal: Failed}) }, // ITEMS: 500, once too often
	"exhaust": func(s *story, w words) { // ITEMS cause=WORD account=yes: no quota, or the key refused
		s.end(w, HandedOver, Outcome{Signal: Exhausted, Cause: w.cause(), Account: w.has("account")})
	},
	"not-found": func(s *story, w words) { // ITEMS: the model is not found
		s.end(w, HandedOver, Outcome{Signal: Exhausted, Alike: 404, First: 1, Later: 5, Cause: errors.New("model not found")})
	},
	"cancel": func(s *story, w words) { s.end(w, Settled, Outcome{}) }, // ITEMS: the caller lost interest in flight
	"withdraw": func(s *story, w words) { // ITEMS: nobody wants them any more
		for _, seq := range w.items {
			s.m.Step(s.now, Withdrawn(s.items[seq]))
		}
	},
	"pause":  func(s *story, w words) { s.m.Step(s.now, Paused(w.run())) },
	"resume": func(s *story, w words) { s.m.Step(s.now, Resumed(w.run())) },
	"drain":  func(s *story, w words) { s.m.Step(s.now, Drained(w.run())) },
	"reset":  func(s *story, w words) { s.m.Step(s.now, LaneReset(w.text("lane", DefaultPool))) },
	"define": func(s *story, w words) { // lane=NAME law=model rpm=N tpm=N burst=D window=N rate=N breaker=N ramp=(FROM,TO,D)
		s.m.Step(s.now, LaneDefined(w.text("lane", DefaultPool), w.lane()))
	},
	"limits": func(s *story, w words) { // lane=NAME rpm=N tpm=N burst=D
		s.m.Step(s.now, LimitsChanged(w.text("lane", DefaultPool), w.lane().Limits))
	},
	"tell": func(s *story, w words) { // lane=NAME permits=N probe=yes stop=CAUSE resume=yes answered=yes rest=yes flow=yes
		for _, message := range w.toTell() {
			s.m.Step(s.now, Delivered(w.text("lane", DefaultPool), message))
		}
	},
	"overhear": func(s *story, w words) { // lane=NAME signal=WORD age=D tokens=N retry-after=D headers=(LIMIT,REMAINING,RESET) cause=WORD
		s.m.Step(s.now, Overheard(w.text("lane", DefaultPool), s.now.Add(-w.span("age")), w.cost(), Outcome{
			Signal: signalNamed(w.text("signal", "")), Latency: w.span("age"), Cause: w.causeOr(nil), Sightings: w.sightings(),
			Directed: w.has("retry-after"), RetryAfter: w.span("retry-after"),
		}))
	},
	"advance":     func(s *story, w words) { s.until(s.now.Add(w.first())) }, // D
	"until-quiet": func(s *story, w words) { s.untilQuiet() },
	"serve":       func(s *story, w words) { s.serve(w.first(), max(time.Second, w.span("every")), w.server(s.server)) }, // D every=D latency=D places=N each=N rate=N breaks=N cause=WORD unsent=yes others=N refusal=503 retry-after=D headers=shown until=refused
	"money":       func(s *story, w words) { s.say("%s", moneyWords(s.m.RunStatus(w.run()))) },
	"in-flight":   func(s *story, w words) { s.say("in flight: %v", slices.Sorted(maps.Keys(s.lent))) },
	"status":      func(s *story, w words) { s.status() },
	"clock-back": func(s *story, w words) { // D: one look at a clock that was set back
		s.now = s.now.Add(-w.first())
		ready := s.m.Ready(s.now)
		s.say("the machine grants %d and wants to be woken at +%v", len(ready.Grants), ready.WakeAt.Sub(storyStart))
		s.now = s.now.Add(w.first())
	},
}

// offer offers COUNT items, numbered on from the last.
func (s *story) offer(w words) {
	var items []*Item
	for range w.items[0] {
		it := &Item{Seq: s.next, Pool: w.text("pool", ""), Cost: w.cost()}
		s.items[it.Seq] = it
		s.next++
		items = append(items, it)
	}
	if s.m.runs[w.run()] == nil {
		s.m.Step(s.now, RunOpened(w.run(), RunConfig{}))
	}
	s.m.Step(s.now, Offered(w.run(), items))
}

// end ends the calls of the items, all at one moment.
func (s *story) end(w words, how func(Grant, Outcome) Event, o Outcome) {
	if w.has("after") {
		s.until(s.now.Add(w.span("after")))
	}
	for _, seq := range w.items {
		g := s.ended(seq)
		o.Latency = s.now.Sub(g.Item.Sent)
		s.m.Step(s.now, how(g, o))
	}
}

// words holds the arguments of a command: numbers, then key=value.
type words struct {
	t     testing.TB
	args  []datadriven.CmdArg
	items []uint64
}

func parse(t testing.TB, d *datadriven.TestData) words {
	w := words{t: t, args: d.CmdArgs}
	for _, a := range d.CmdArgs {
		from, to, span := strings.Cut(a.Key, "-")
		first, err := strconv.ParseUint(from, 10, 32)
		if err != nil || len(a.Vals) > 0 {
			continue
		}
		last := first
		if span {
			last, _ = strconv.ParseUint(to, 10, 32)
		}
		for ; first <= last; first++ {
			w.items = append(w.items, first)
		}
	}
	return w
}

func (w words) vals(key string) []string {
	for _, a := range w.args {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func (w words) has(key string) bool { return w.vals(key) != nil }

func (w words) text(key, otherwise string) string {
	if v := w.vals(key); len(v) > 0 {
		return v[0]
	}
	return otherwise
}

func (w words) number(key string) float64 {
	x, err := strconv.ParseFloat(w.text(key, "0"), 64)
	if err != nil {
		w.t.Fatalf("%s: %v", key, err)
	}
	return x
}

func (w words) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w words) span(key string) time.Duration { return w.duration(w.text(key, "0s")) }
func (w words) first() time.Duration          { return w.duration(w.args[0].Key) }
func (w words) run() RunID                    { return RunID(max(1, w.number("run"))) }
func (w words) cause() error                  { return w.causeOr(errors.New("insufficient_quota")) }

func (w words) causeOr(otherwise error) error {
	if !w.has("cause") {
		return otherwise
	}
	return errors.New(w.text("cause", ""))
}

func (w words) cost() limiter.Cost { return limiter.Cost{Requests: 1, Input: w.number("tokens")} }

// sightings returns the limit on requests a minute that the headers of an answer show.
func (w words) sightings() []limiter.Sighting {
	v := w.vals("headers")
	if v == nil {
		return nil
	}
	limit, _ := strconv.ParseFloat(v[0], 64)
	left, _ := strconv.ParseFloat(v[1], 64)
	return []limiter.Sighting{{Dimension: limiter.Requests, Limit: limit, Remaining: left, Reset: w.duration(v[2]), HasReset: true}}
}

func (w words) pools() (pools []PoolConfig) {
	for _, a := range w.args {
		if a.Key == "pool" || a.Key == "fallback" {
			c := PoolConfig{Name: a.Vals[0], Lanes: a.Vals[1:]}
			if a.Key == "fallback" {
				c.Tiers = each(len(c.Lanes))
			}
			pools = append(pools, c)
		}
		if a.Key == "prefer" {
			pools = append(pools, w.tiers(a.Vals))
		}
		if a.Key == "weights" {
			pools[len(pools)-1].Weights = numbers(a.Vals)
		}
	}
	return pools
}

func numbers(vals []string) (all []int) {
	for _, v := range vals {
		n, _ := strconv.Atoi(v)
		all = append(all, n)
	}
	return all
}

// tiers is a pool whose tiers a stroke separates: (chat,1m,large,/,small).
func (w words) tiers(vals []string) PoolConfig {
	c := PoolConfig{Name: vals[0], After: w.duration(vals[1]), Spill: w.span("spill")}
	tier := 0
	for _, lane := range vals[2:] {
		if lane == "/" {
			tier++
			continue
		}
		c.Lanes, c.Tiers = append(c.Lanes, lane), append(c.Tiers, tier)
	}
	return c
}

// toTell are messages for the law of a remote lane.
func (w words) toTell() (all []any) {
	if n := w.number("permits"); n > 0 {
		all = append(all, int(n))
	}
	if w.has("probe") {
		all = append(all, probeMessage{})
	}
	if w.has("rest") || w.has("flow") {
		all = append(all, restMessage{w.has("rest")})
	}
	return append(all, limiter.Reply{Stop: w.stop(), Resume: w.has("resume"), Answered: w.has("answered")})
}

func (w words) stop() error {
	if !w.has("stop") {
		return nil
	}
	return errors.New(w.text("stop", ""))
}

func signalNamed(word string) Signal {
	return Signal(slices.Index(signalWords[:], word))
}

var dimensionNamed = map[string]limiter.Dimension{"tokens": limiter.Tokens, "requests": limiter.Requests}

// remoteMaker is the maker of the laws of remote lanes in stories: law=led.
var remoteMaker = &maker{}

var lawNamed = map[string]limiter.LawName{"model": limiter.Model, "plain": limiter.Plain}

func (w words) lane() LaneConfig {
	c := LaneConfig{
		Law:      lawNamed[w.text("law", "plain")],
		Limits:   limiter.Limits{RPM: w.number("rpm"), TPM: w.number("tpm"), Burst: w.span("burst")},
		Window:   int(w.number("window")),
		Rate:     limiter.RateConfig{Initial: w.number("rate")},
		Breaker:  limiter.BreakerConfig{Consecutive: int(w.number("breaker"))},
		Cooldown: limiter.CooldownConfig{Jitter: -1},
		Account:  w.text("account", ""),
	}
	if w.text("law", "") == "led" {
		c.Law, c.Maker, c.Cooldown = limiter.Model, remoteMaker, limiter.CooldownConfig{}
	}
	if v := w.vals("ramp"); v != nil {
		from, _ := strconv.ParseFloat(v[0], 64)
		to, _ := strconv.ParseFloat(v[1], 64)
		c.Ramp = limiter.RampConfig{Initial: from, Target: to, Duration: w.duration(v[2])}
	}
	return c
}

func (w words) usd(key string) limiter.Money { return limiter.USD(w.number(key)) }

// budget gives a run a budget, of which each call takes the same price: dear costs twice that.
func (w words) budget(c RunConfig) RunConfig {
	if !w.has("budget") {
		return c
	}
	c.Budget, c.Spent = w.usd("budget"), w.usd("spent")
	price := w.usd("price")
	c.Price = func(_ *Item, lane string, _ float64) (limiter.Money, bool) {
		if lane == "dear" {
			return 2 * price, true
		}
		return price, lane != "unpriced"
	}
	return c
}

// moneyWords describes the money of a run, and what holds it back.
func moneyWords(r RunStatus) string {
	m := r.Money
	return fmt.Sprintf("of %v: %v spent, %v reserved, up to %v in doubt, %v left; calls cost %v more than reserved; held by %q", m.Cap, m.Spent, m.Reserved, m.Doubtful, m.Left(), m.Over, r.Bound)
}
