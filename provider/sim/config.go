package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Config says how the provider behaves. The zero value is a provider without
// limits, latency or faults. Every duration counts from the model's start.
type Config struct {
	// RPM and TPM are the requests and tokens granted each minute; 0 is unlimited.
	RPM, TPM float64

	// Burst is the depth of the gauges in time of refill; they hold at least one request.
	// 0 is 60 s: the depth that OpenAI's published refusals imply, where a full
	// minute's limit may be spent at once. Not used with Window.
	Burst time.Duration

	// Window, above zero, grants the limit in fixed windows of this length,
	// counted from the start, in place of a continuous refill.
	Window time.Duration

	// Latency is the time that an answered call takes.
	Latency Latency

	// Refusal is the time that a refusal takes. 0 is 20 ms where a latency is set
	// (a refusal costs a round trip, not a generation), else nothing.
	Refusal time.Duration

	// RetryAfter says whether a 429 names the wait, as the face's provider would: in
	// Retry-After, in seconds rounded up as real ones are, or in its body. RetryAfterMS
	// adds the exact wait, as retry-after-ms or as a fraction of the seconds.
	RetryAfter   Mode
	RetryAfterMS bool

	// Terse keeps the figures of the limit out of the messages of refusals, as
	// most providers other than OpenAI do.
	Terse bool

	// Headers adds the gauges' state to every answer of a call that reached them, as
	// x-ratelimit-* or in the form of the face's provider. Providers without such headers send
	// none.
	Headers bool

	// Errors are faults drawn for single calls.
	Errors Rates

	// Outages are stretches in which no call is answered. The first that
	// covers an instant rules it.
	Outages []Outage

	// Changes set new limits, in the order of their instants.
	Changes []Change

	// QuotaAfter is the number of accepted calls after which the balance is
	// spent: 429 insufficient_quota from then on. 0 is never.
	QuotaAfter int

	// Face is the dialect in which a Server answers; nil is OpenAI's. A Model has none.
	Face face.Face

	// Keys are the keys accepted, Models the models known. Empty is any; the face decides whether a
	// call must have a key at all.
	Keys, Models []string

	// TrackIDs keeps a count for each ID (some 100 bytes apiece), and makes a
	// call's fate depend on its ID and try alone, whatever the order of arrival.
	TrackIDs bool

	// TrackBodies keeps a checksum of each body received, for a comparison with what should
	// have been sent (some 100 bytes for each that differs).
	TrackBodies bool

	// Seed decides every draw. 0 is a seed like any other.
	Seed uint64
}

// Latency is a lognormal distribution, the usual shape of generation times:
// Median·exp(Sigma·N(0,1)). The zero value answers at once.
type Latency struct {
	Median time.Duration
	Sigma  float64       // 0 is constant; 0.4 puts one call in ten above 1.67 medians
	Max    time.Duration // ceiling of a draw; 0 is ten medians
}

// Mode says which refusals carry Retry-After.
type Mode int

// Never is the zero value. Sometimes is every second 429 on average.
const (
	Never Mode = iota
	Always
	Sometimes
)

// Rates are the probabilities, in [0, 1] and at most 1 in sum, that a call meets
// a fault. BadRequest400 and Overloaded503 are met before the gauges and cost
// nothing; the others are met by a call already charged, as a real failure is. Truncated
// breaks the connection in the middle of an answer, streamed or not. StreamError and
// StreamSilent are met in the middle of a stream, and by streams alone.
type Rates struct {
	Server500, Overloaded503, BadRequest400 float64
	Reset, Hang, Truncated, Malformed200    float64
	StreamError, StreamSilent               float64
}

// Outage is a stretch [From, From+For) in which every call meets Mode, or with OutageFlex those of
// one tier.
type Outage struct {
	From, For time.Duration
	Mode      OutageMode
}

// OutageMode is the form in which a caller sees an outage.
type OutageMode string

// An outage refuses, never answers, or breaks the connection.
const (
	Outage503   OutageMode = "503"
	OutageHang  OutageMode = "hang"
	OutageReset OutageMode = "reset"
	// OutageFlex refuses the calls that ask for the flex tier of service: it has no room. All
	// others are answered.
	OutageFlex OutageMode = "flex"
)

// Change sets both limits at an instant; 0 is unlimited. A gauge keeps its level,
// up to its new depth.
type Change struct {
	At       time.Duration
	RPM, TPM float64
}

const (
	minute = time.Minute

	defaultBurst   = time.Minute
	defaultRefusal = 20 * time.Millisecond

	// defaultSpread bounds a latency drawn without a ceiling. Ten medians lie
	// beyond the 99.9999th percentile up to a sigma of 0.48.
	defaultSpread = 10
)

// withDefaults returns the configuration with its defaults in place of zeros.
func (c Config) withDefaults() Config {
	if c.Burst == 0 {
		c.Burst = defaultBurst
	}
	if c.Refusal == 0 && c.Latency.Median > 0 {
		c.Refusal = defaultRefusal
	}
	if c.Latency.Max == 0 {
		c.Latency.Max = defaultSpread * c.Latency.Median
	}
	return c
}

// Validate names everything in the configuration that makes no sense.
func (c Config) Validate() error {
	return errors.Join(
		c.checkAmounts(),
		c.Errors.check(),
		c.checkOutages(),
		c.checkChanges(),
		c.checkWords(),
	)
}

// checkAmounts refuses every amount that is negative or not finite.
func (c Config) checkAmounts() error {
	return errors.Join(
		checkAmount("RPM", c.RPM),
		checkAmount("TPM", c.TPM),
		checkAmount("QuotaAfter", float64(c.QuotaAfter)),
		checkAmount("Burst", float64(c.Burst)),
		checkAmount("Window", float64(c.Window)),
		checkAmount("Refusal", float64(c.Refusal)),
		checkAmount("Latency.Median", float64(c.Latency.Median)),
		checkAmount("Latency.Sigma", c.Latency.Sigma),
		checkAmount("Latency.Max", float64(c.Latency.Max)),
	)
}

func checkAmount(name string, v float64) error {
	if v >= 0 && !math.IsInf(v, 1) {
		return nil
	}
	return fmt.Errorf("sim: config: %s is %v: must be zero or more, and finite", name, v)
}

// check refuses rates that are negative or not finite, and a sum of rates above 1.
func (r Rates) check() error {
	sum, errs := 0.0, []error(nil)
	for _, p := range []float64{
		r.Server500, r.Overloaded503, r.BadRequest400,
		r.Reset, r.Hang, r.Truncated, r.Malformed200, r.StreamError, r.StreamSilent,
	} {
		errs = append(errs, checkAmount("Errors", p))
		sum += p
	}
	// A sum of fractions meant as 1 may exceed it by rounding.
	if sum > 1+epsilon {
		errs = append(errs, fmt.Errorf("sim: config: Errors sum to %v: must be at most 1", sum))
	}
	return errors.Join(errs...)
}

// checkOutages refuses outages that do not last, begin before the start, or have an unknown mode.
func (c Config) checkOutages() error {
	var errs []error
	for i, outage := range c.Outages {
		if outage.From < 0 || outage.For <= 0 {
			errs = append(errs, fmt.Errorf("sim: config: outage %d lasts %v from %v: must last and not begin before the start", i, outage.For, outage.From))
		}
		switch outage.Mode {
		case Outage503, OutageHang, OutageReset, OutageFlex:
		default:
			errs = append(errs, fmt.Errorf("sim: config: outage %d has mode %q: must be 503, hang, reset or flex", i, outage.Mode))
		}
	}
	return errors.Join(errs...)
}

// checkChanges refuses changes that are not in the order of their instants, and limits that are
// negative or not finite. Two changes may have one instant.
func (c Config) checkChanges() error {
	var errs []error
	last := time.Duration(0)
	for i, change := range c.Changes {
		if change.At < last {
			errs = append(errs, fmt.Errorf("sim: config: change %d is at %v: must not be before %v", i, change.At, last))
		}
		last = max(last, change.At)
		errs = append(errs, checkAmount("Changes.RPM", change.RPM), checkAmount("Changes.TPM", change.TPM))
	}
	return errors.Join(errs...)
}

// checkWords refuses an unknown RetryAfter, a RetryAfterMS that nothing would carry, and an empty
// key.
func (c Config) checkWords() error {
	var errs []error
	if c.RetryAfter < Never || c.RetryAfter > Sometimes {
		errs = append(errs, fmt.Errorf("sim: config: RetryAfter is %d: must be Never, Always or Sometimes", c.RetryAfter))
	}
	if c.RetryAfterMS && c.RetryAfter == Never {
		errs = append(errs, errors.New("sim: config: RetryAfterMS is set: needs RetryAfter Always or Sometimes"))
	}
	for _, k := range c.Keys {
		if k == "" {
			errs = append(errs, errors.New("sim: config: Keys has an empty key: a call without one would pass"))
		}
	}
	return errors.Join(errs...)
}

// Demo returns the provider of a first run. Its headers show what is left of its limit, so that a
// run follows them and meets no refusal. The figures: 40 requests at once (Burst × RPM/60),
// then 10 a second, so that 240 prompts take 20 s; 150 ms is the time to a short answer of a
// small hosted model.
func Demo() Config {
	demo := Silent()
	demo.Headers = true
	return demo
}

// Silent is Demo without headers: only refusals show where its limit is. 240 prompts through 64
// workers meet a burst of them, a cooldown, a probe and a ramp, and are done within 15 to 40 s.
func Silent() Config {
	return Config{
		RPM:        600,
		Burst:      4 * time.Second,
		Latency:    Latency{Median: 150 * time.Millisecond, Sigma: 0.4, Max: 1500 * time.Millisecond},
		RetryAfter: Always,
		Terse:      true, // or one refusal would tell all, and there would be nothing to probe
		Seed:       1,
	}
}

// Fast returns a provider that never holds a run back: no limits, no latency, no faults.
func Fast() Config { return Config{} }
