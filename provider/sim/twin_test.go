package sim

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// twin is the obviously right quota: it keeps the exact list of what was
// accepted, and for each question replays the whole of it in fractions.
type twin struct {
	cfg      Config
	accepted []acceptance
}

type acceptance struct {
	at               time.Duration
	requests, tokens int64
}

func (w *twin) ask(at time.Duration, requests, tokens int64) bool {
	ok := w.fits(at, requests, func(a acceptance) int64 { return a.requests }, w.cfg.RPM, func(c Change) float64 { return c.RPM }) &&
		w.fits(at, tokens, func(a acceptance) int64 { return a.tokens }, w.cfg.TPM, func(c Change) float64 { return c.TPM })
	if ok {
		w.accepted = append(w.accepted, acceptance{at, requests, tokens})
	}
	return ok
}

// fits walks through time by way of every acceptance and change.
func (w *twin) fits(at time.Duration, cost int64, of func(acceptance) int64, limit float64, to func(Change) float64) bool {
	one := big.NewRat(1, 1)
	depth := func(limit float64) *big.Rat {
		span := w.cfg.Burst
		if w.cfg.Window > 0 {
			span = w.cfg.Window
		}
		d := inflow(limit, span)
		if d.Cmp(one) < 0 {
			return one
		}
		return d
	}
	level, last := depth(limit), time.Duration(0)
	fill := func(to time.Duration) {
		d := to - last
		if win := w.cfg.Window; win > 0 {
			d = (to/win - last/win) * win
		}
		level = least(depth(limit), new(big.Rat).Add(level, inflow(limit, d)))
		last = to
	}
	changes := w.cfg.Changes
	until := func(at time.Duration) {
		for len(changes) > 0 && changes[0].At <= at {
			fill(changes[0].At)
			was := limit
			limit = to(changes[0])
			if was == 0 {
				level = depth(limit)
			}
			level = least(level, depth(limit))
			changes = changes[1:]
		}
		fill(at)
	}
	for _, a := range w.accepted {
		until(a.at)
		if limit > 0 {
			level = new(big.Rat).Sub(level, big.NewRat(of(a), 1))
		}
	}
	until(at)
	return limit == 0 || level.Cmp(least(depth(limit), big.NewRat(cost, 1))) >= 0
}

func inflow(perMinute float64, d time.Duration) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetFloat64(perMinute), big.NewRat(int64(d), int64(time.Minute)))
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// The model accepts exactly the calls that a replay in fractions accepts, with
// bursts, fixed windows, two dimensions and changing limits.
func TestModelAcceptsWhatItsSlowTwinAccepts(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			cfg := randomQuota(rng)
			m, w := NewModel(cfg, epoch), &twin{cfg: cfg}
			at := time.Duration(0)
			for range 100 {
				at += time.Duration(rng.IntN(4)*rng.IntN(400)) * time.Millisecond
				tokens := 1 + rng.Int64N(300)
				got := m.Decide(epoch.Add(at), Call{Requests: 1, Tokens: float64(tokens)})
				if got.Kind == TooLarge {
					continue
				}
				if want := w.ask(at, 1, tokens); want != (got.Kind == Accepted) {
					t.Fatalf("%+v\nat %v with %d tokens: model says %s, twin accepts: %v", cfg, at, tokens, got.Kind, want)
				}
			}
		})
	}
}

// Limits are multiples of 60 a minute and instants whole milliseconds, so that
// ties are exact in the twin and frequent.
func randomQuota(rng *rand.Rand) Config {
	rpm := func() float64 { return float64(60 * rng.IntN(12)) }
	tpm := func() float64 { return float64(3000 * rng.IntN(12)) }
	cfg := Config{
		RPM:   rpm(),
		TPM:   tpm(),
		Burst: time.Duration(1+rng.IntN(60)) * time.Second,
	}
	if rng.IntN(3) == 0 {
		cfg.Window = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}[rng.IntN(3)]
	}
	at := time.Duration(0)
	for range rng.IntN(4) {
		at += time.Duration(rng.IntN(30_000)) * time.Millisecond
		cfg.Changes = append(cfg.Changes, Change{At: at, RPM: rpm(), TPM: tpm()})
	}
	return cfg
}
