package limiter_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/laws"
)

var noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// A counter makes laws that count the calls of the law that is named.
type counter struct{ made []*counting }

func (c *counter) NewLaw(cfg limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	l := &counting{Law: laws.New(cfg, now, rng)}
	c.made = append(c.made, l)
	return l
}

type counting struct {
	limiter.Law
	sent int
}

func (c *counting) Sent(now time.Time, cost limiter.Cost, beside int) limiter.Ticket {
	c.sent++
	return c.Law.Sent(now, cost, beside)
}

// An open law lets everything leave, and says so itself of nothing but its calls' numbers.
type open struct {
	limiter.Unlimited
	number uint64
}

func (o *open) Sent(time.Time, limiter.Cost, int) limiter.Ticket {
	o.number++
	return limiter.Ticket{Number: o.number, Probe: true}
}

// A law that another package makes is a law: it is asked and told like any other, and is
// given the configuration by which the named one can be made.
func TestMakerMakesTheLaw(t *testing.T) {
	maker := &counter{}
	for _, name := range []limiter.LawName{limiter.Model, limiter.Plain} {
		c := limiter.LawConfig{Law: name, Maker: maker, Limits: limiter.Limits{RPM: 60}}
		law := laws.New(c, noon, rand.New(rand.NewPCG(1, 1)))
		for range 2 {
			law.Sent(noon, limiter.Cost{Requests: 1}, 0)
		}
		if made := maker.made[len(maker.made)-1]; law != limiter.Law(made) || made.sent != 2 {
			t.Errorf("%v: the law is a %T, of which %d calls left", name, law, made.sent)
		}
		if wait, _ := law.Wait(noon, limiter.Cost{Requests: 1}); wait == 0 {
			t.Errorf("%v: three calls at once, of one a second", name)
		}
	}
}

// Unlimited lets everything leave at any time, however many calls break, has nothing to remember and takes up nothing.
func TestUnlimitedHoldsNothingBack(t *testing.T) {
	law := limiter.Law(&open{})
	cost := limiter.Cost{Requests: 1, Input: 1e9}
	for i := range 100 {
		now := noon.Add(time.Duration(i))
		law.Tick(now, true)
		law.Remaining(cost)
		law.SetLimits(now, limiter.Limits{RPM: 1})
		if k := law.Sent(now, cost, i); k != (limiter.Ticket{Number: uint64(i + 1), Probe: true}) {
			t.Fatalf("%+v", k)
		}
		law.Answered(now, limiter.News{})
		law.Failed(now, limiter.News{Timeout: true})
		law.Vanished(now, limiter.News{})
		law.Broken(now)
		ramp := law.SetRamp(now, limiter.RampConfig{Initial: 1})
		wait, by := law.Wait(now, cost)
		if !ramp.IsZero() || wait != 0 || by != limiter.BoundNone || law.ProbeWait(now, cost) != 0 || law.Window(now) != 0 || law.Slowed(now) != 0 {
			t.Fatal("something is held back")
		}
		if !law.Resume(now) || law.Climb(now).After(now) {
			t.Fatal("there is something to probe, or to climb")
		}
	}
	v := law.View(noon, cost)
	if !math.IsInf(v.Pace, 1) || v.String() != "" || law.Save(noon).Version != 0 {
		t.Errorf("something is believed: %v, %q", v.Pace, v)
	}
	if err := law.Restore(noon, limiter.Memory{Version: 1, Law: "model", At: noon}); !errors.Is(err, limiter.ErrMemory) {
		t.Errorf("a memory is taken up: %v", err)
	}
	if k := (limiter.Unlimited{}).Sent(noon, cost, 1e6); k.Beside != math.MaxUint16 {
		t.Errorf("%+v", k)
	}
}

// A law that embeds Unlimited keeps a wait that the server names: the lane waits, and a
// refusal that comes later may lengthen that. Where none is named, or one that is no wait,
// the item rests and the lane flows.
func TestUnlimitedKeepsNamedWaits(t *testing.T) {
	law := limiter.Law(&open{})
	named, never := limiter.News{Directed: true, RetryAfter: time.Hour}, time.Time{}
	rests := limiter.Refusal{Alone: true, Until: noon.Add(limiter.DefaultCooldownBase)}
	for what, c := range map[string]struct {
		news     limiter.News
		refused  limiter.Refusal
		straggle time.Time
	}{
		"named":   {named, limiter.Refusal{Until: noon.Add(time.Hour)}, noon.Add(time.Hour)},
		"nothing": {limiter.News{}, rests, never},
		"none":    {limiter.News{Directed: true}, rests, never},
		"past":    {limiter.News{Directed: true, RetryAfter: -time.Hour}, rests, never},
	} {
		if r := law.Refused(noon, c.news); r != c.refused {
			t.Errorf("%s: refused: %+v, want %+v", what, r, c.refused)
		}
		if until := law.Straggled(noon, c.news); !until.Equal(c.straggle) {
			t.Errorf("%s: straggled: %v, want %v", what, until, c.straggle)
		}
	}
}
