package lab_test

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

// What the panel says is true. Each scene is a world of which all is known, and a sentence
// that was said in it and was false.

// A panelScene is one such world.
type panelScene struct {
	name    string
	setting setting
	server  sim.Config
	opts    []batch.Option
	drained time.Duration // when the run is to end; 0: when it has
	sleeps  time.Duration // for which the process is stopped in its middle
	fault   func(*glance) string
	says    string // in one of the glances at least; "": nothing
}

// A glance is a look at the panel of a run.
type glance struct {
	at   time.Duration // since the run began
	left time.Duration // until it will have ended
	event.Progress
}

// text is every sentence.
func (g *glance) text() string {
	e := &g.Progress
	return strings.Join([]string{e.BoundText, e.BoundMore, e.BoundWide, e.BoundShort, e.EndsText, event.Line(e)}, "\n")
}

// A stopped clock is that of a process which was stopped for some time, at one moment of its
// run: it is that much ahead from then on, and its alarms are late.
type stopped struct {
	clockwork.Clock
	at  time.Time
	lag time.Duration
}

func (c stopped) Now() time.Time {
	now := c.Clock.Now()
	if now.Before(c.at) {
		return now
	}
	return now.Add(c.lag)
}

func (s *panelScene) watch(t *testing.T) (all []glance) {
	synctest.Test(t, func(t *testing.T) {
		client, err := openai.New(openai.Config{
			BaseURL: "http://sim.invalid/v1", HTTPClient: &http.Client{Transport: sim.NewTransport(sim.New(s.server, clockwork.NewRealClock()))},
		})
		if err != nil {
			t.Fatal(err)
		}
		clock := stopped{clockwork.NewRealClock(), time.Now().Add(sleepsAt), s.sleeps}
		rec, ctl := observe.New(observe.Config{Total: s.setting.items}), batch.NewControl()
		over, watched := make(chan struct{}), make(chan struct{})
		began := clock.Now()
		go func() {
			defer close(watched)
			for tick := time.NewTicker(500 * time.Millisecond); ; {
				select {
				case <-over:
					tick.Stop()
					return
				case <-tick.C:
				}
				p := rec.Snapshot(clock.Now())
				all = append(all, glance{at: clock.Now().Sub(began), Progress: event.Of(&p, event.Context{Zone: time.UTC, Timeout: 2 * time.Minute})})
				if s.drained > 0 && clock.Now().Sub(began) > s.drained {
					ctl.Drain()
				}
			}
		}()
		opts := append(append(rec.Options(), s.setting.options()...), batch.WithControl(ctl), batch.WithAttemptTimeout(2*time.Minute), batch.WithClock(clock))
		_, err = batch.Run(t.Context(), s.setting.input(), s.setting.caller(client), append(opts, s.opts...)...)
		if (err != nil) != (s.drained > 0) {
			t.Error(err)
		}
		took := clock.Now().Sub(began)
		close(over)
		<-watched
		for i := range all {
			all[i].left = took - all[i].at
		}
	})
	return all
}

// never is a fault if a sentence is said.
func never(pattern string) func(*glance) string {
	re := regexp.MustCompile(pattern)
	return func(g *glance) string { return re.FindString(g.text()) }
}

// neverFrom is the same from a moment of the run on.
func neverFrom(from time.Duration, pattern string) func(*glance) string {
	say := never(pattern)
	return func(g *glance) string {
		if g.at < from {
			return ""
		}
		return say(g)
	}
}

// soonOver is a fault if a run is said to be over at once that goes on for long.
func soonOver(g *glance) string {
	const soon, long = 1, 8 * time.Second
	if g.Ends == nil || g.Ends.LikelyS >= soon || g.left < long {
		return ""
	}
	return "ends " + g.EndsText
}

// steadily is a fault if from 8 s on the end is not said, or if it is said wrong by a third.
func steadily(g *glance) string {
	const from, last, allowed = 8 * time.Second, 4 * time.Second, 1. / 3
	if g.at < from || g.left < last {
		return ""
	}
	if g.Ends == nil || math.Abs(g.Ends.LikelyS/g.left.Seconds()-1) > allowed {
		return "ends " + g.EndsText
	}
	return ""
}

// sleepsAt is the time at which a run's process is stopped.
const sleepsAt = 40 * time.Second

// afterSleep is a fault if the end is said wrong by a third once a minute's sleep is over, or if
// more than a few seconds of it are booked as another bound's.
func afterSleep(g *glance) string {
	const woken, booked = sleepsAt + time.Minute, 55
	switch {
	case g.at < woken+3*time.Second || g.left < 5*time.Second:
		return ""
	case g.BoundS["slept"] < booked:
		return fmt.Sprint("it is booked as ", g.BoundS)
	case g.Efficiency == nil || *g.Efficiency < 0.8: // nothing could have been done in that time
		return fmt.Sprint("an efficiency of ", g.Efficiency)
	case g.Ends == nil || math.Abs(g.Ends.LikelyS/g.left.Seconds()-1) > 1./3:
		return "ends " + g.EndsText
	}
	return ""
}

// answers are those of an ordinary model, and down is a server that goes down at 25 s.
var answers = sim.Latency{Median: 300 * time.Millisecond, Sigma: 0.3}

func down(mode sim.OutageMode) sim.Config {
	return sim.Config{Latency: answers, Outages: []sim.Outage{{From: 25 * time.Second, For: time.Hour, Mode: mode}}}
}

const theirPace = `server's own pace: no more than|server's pace: \d+ in flight`

var panelScenes = []panelScene{
	{
		name:    "a limit that only the words of a 429 name",
		setting: setting{tokens: 50, concurrency: 64, items: 400},
		server:  sim.Config{RPM: 300, Burst: 5 * time.Second, Latency: answers, RetryAfter: sim.Always},
		fault:   never(`its headers`), says: `300 a minute \(its refusals\)`,
	},
	{
		name:    "a limit that headers name",
		setting: setting{tokens: 50, concurrency: 64, items: 100},
		server:  sim.Config{RPM: 300, Burst: 5 * time.Second, Latency: answers, Headers: true, RetryAfter: sim.Always},
		fault:   never(`its refusals`), says: `300 a minute \(its headers\)`,
	},
	{
		name:    "no cap on calls at once, but a law that believes in one",
		setting: setting{tokens: 50, concurrency: 32, items: 300, configured: true, rpm: 6000, seed: 9},
		server:  sim.Config{RPM: 300, Burst: 5 * time.Second, Latency: answers, RetryAfter: sim.Always},
		fault:   never(theirPace), says: `\d+ calls? at once, our guess so far`,
	},
	{
		name:    "alone, with more tokens than were estimated",
		setting: setting{tokens: 250, concurrency: 16, items: 150},
		server:  sim.Config{TPM: 30_000, Burst: 5 * time.Second, Latency: answers, Headers: true, RetryAfter: sim.Always},
		opts:    []batch.Option{batch.WithCostOf(func(int) batch.Cost { return batch.Cost{Requests: 1, Input: 5, Output: 60} })},
		fault:   never(`somebody else`), says: `tokens a minute more are drawn than estimated`,
	},
	{
		name:    "a limit that is learned from below",
		setting: setting{tokens: 50, concurrency: 32, items: 400, seed: 6}, drained: 3 * time.Minute,
		server: sim.Config{RPM: 60, Burst: time.Second, Latency: sim.Latency{Median: 800 * time.Millisecond, Sigma: 0.4}, Terse: true, Seed: 6},
		fault: func(g *glance) string {
			if len(g.Lanes) == 0 || len(g.Lanes[0].Limits) == 0 || g.Lanes[0].Limits[0].PerSecond > 0.9*60/60 {
				return ""
			}
			return never(`\(learned\)|requests limit: `)(g)
		},
		says: `our guess so far: \d+ of \d+ a minute, rising`,
	},
	{
		name:    "the limit that was told is too high",
		setting: setting{tokens: 100, concurrency: 8, items: 800, configured: true, rpm: 6000},
		server:  sim.Config{RPM: 300, Latency: sim.Latency{Median: 200 * time.Millisecond, Sigma: 0.4}, Terse: true, RetryAfter: sim.Always},
		fault:   soonOver,
	},
	{
		name:    "an outage when little is left",
		setting: setting{tokens: 100, concurrency: 8, items: 224, configured: true, rpm: 600},
		server: sim.Config{
			Latency: sim.Latency{Median: 200 * time.Millisecond, Sigma: 0.4},
			Outages: []sim.Outage{{From: 22 * time.Second, For: time.Minute, Mode: sim.Outage503}},
		},
		fault: func(g *glance) string {
			switch {
			case g.at < 27*time.Second: // nobody knows at once that it is one
				return ""
			case g.at > 34*time.Second && g.at < 80*time.Second && g.Ends != nil:
				return "ends " + g.EndsText
			}
			return soonOver(g)
		},
		says: `cannot be said during an outage`,
	},
	{
		name: "an outage begins: connections break", setting: setting{tokens: 50, concurrency: 8, items: 2000}, server: down(sim.OutageReset),
		drained: 50 * time.Second, fault: neverFrom(27*time.Second, `your -c 8`), says: `an outage: \d+ calls in a row broke`,
	},
	{
		name: "an outage begins: 503", setting: setting{tokens: 50, concurrency: 8, items: 2000}, server: down(sim.Outage503),
		drained: 50 * time.Second, fault: neverFrom(28*time.Second, `your -c 8`), says: `an overload: nothing is let in`,
	},
	{
		name: "an outage begins: nothing is answered", setting: setting{tokens: 50, concurrency: 8, items: 2000}, server: down(sim.OutageHang),
		drained: 50 * time.Second, fault: neverFrom(37*time.Second, `your -c 8`), says: `calls that go unanswered: none of 8 has ended for a long time`,
	},
	{
		name:    "thirty steady seconds, by a limit on requests that headers show",
		setting: setting{tokens: 50, concurrency: 64, items: 300},
		server:  sim.Config{RPM: 600, Headers: true, Burst: time.Second, Latency: answers}, fault: steadily,
	},
	{
		name:    "thirty steady seconds, by a limit on tokens that headers show",
		setting: setting{tokens: 500, concurrency: 64, items: 300},
		server:  sim.Config{TPM: 300_000, Headers: true, Burst: time.Second, Latency: answers}, fault: steadily,
	},
	{
		name:    "thirty steady seconds, by a limit that was told",
		setting: setting{tokens: 50, concurrency: 64, items: 300, configured: true, rpm: 600},
		server:  sim.Config{RPM: 600, Burst: time.Second, Latency: answers}, fault: steadily,
	},
	{
		name:    "a minute's sleep, by a limit on requests",
		setting: setting{tokens: 50, concurrency: 64, items: 900}, sleeps: time.Minute,
		server: sim.Config{RPM: 600, Headers: true, Burst: time.Second, Latency: answers}, fault: afterSleep, says: `this computer slept`,
	},
	{
		name:    "a minute's sleep, by the concurrency",
		setting: setting{tokens: 50, concurrency: 4, items: 1200}, sleeps: time.Minute,
		server: sim.Config{Latency: answers}, fault: afterSleep, says: `this computer slept`,
	},
}

func TestWhatThePanelSaysIsTrue(t *testing.T) {
	for _, s := range panelScenes {
		t.Run(s.name, func(t *testing.T) {
			says, said := regexp.MustCompile(s.says), false
			faults := 0
			for _, g := range s.watch(t) {
				said = said || says.MatchString(g.text())
				if fault := s.fault(&g); fault != "" && faults < 5 {
					faults++
					t.Errorf("after %v, %v before its end: %s", g.at, g.left.Round(time.Millisecond), fault)
				}
			}
			if !said {
				t.Errorf("%q was not said", s.says)
			}
		})
	}
}
