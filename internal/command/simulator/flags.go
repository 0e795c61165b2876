package simulator

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider/sim"
)

// SimFlags are the flags of sim. A flag that is not given has the profile's value.
type SimFlags struct {
	addr, dialect  string
	profile        string
	rpm, tpm       float64
	burst, window  time.Duration
	latency        time.Duration
	sigma          float64
	headers        bool
	retryAfter     string
	errors, outage string
	quotaAfter     int
	seed           uint64
}

// modeWords maps the modes to the values of --retry-after.
var modeWords = map[sim.Mode]string{sim.Never: "never", sim.Always: "always", sim.Sometimes: "sometimes"}

// Register adds the flags to a command.
func (f *SimFlags) Register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.addr, "addr", "127.0.0.1:8080", "address to listen on; port 0 takes any free one")
	fs.StringVar(&f.dialect, "dialect", "openai", "provider that it imitates: "+simDialectList()+" (Bedrock's is converse)")
	fs.StringVar(&f.profile, "profile", settings.ProfileDemo, "settings that the other flags change: demo (its headers say what its limit is), silent (only refusals show it) or fast (no limit)")
	fs.Float64Var(&f.rpm, "rpm", 0, "requests granted a minute; 0: no limit")
	fs.Float64Var(&f.tpm, "tpm", 0, "tokens granted a minute; 0: no limit")
	fs.DurationVar(&f.burst, "burst", 0, "how much refill is saved up; 0: a minute of it")
	fs.DurationVar(&f.window, "window", 0, "grant the limit in fixed windows of this length; 0: refill continuously")
	fs.DurationVar(&f.latency, "latency", 0, "median time to an answer")
	fs.Float64Var(&f.sigma, "sigma", 0, "spread of the latency (lognormal); 0.4 is usual, 0: constant")
	fs.BoolVar(&f.headers, "headers", false, "send headers with the state of the limit, if the dialect has any")
	fs.StringVar(&f.retryAfter, "retry-after", "never", "whether refusals name a wait: never, always or sometimes")
	fs.StringVar(&f.errors, "errors", "", "shares of faults: 500=0.1,503=0.05,400=0.01,reset=0.01,hang=0.01,truncated=0.01,malformed=0.01, and of streams alone stream-error=0.01,stream-silent=0.01")
	fs.StringVar(&f.outage, "outage", "", "outage, as FROM+FOR or FROM+FOR:MODE (503, hang, reset, or flex: only calls of the flex tier are refused), such as 10s+5s or 1m+30s:hang")
	fs.IntVar(&f.quotaAfter, "quota-after", 0, "answers after which the balance is spent; 0: never")
	fs.Uint64Var(&f.seed, "seed", 0, "seed for all random choices")
	settings.NameValues(fs, map[string]string{
		"addr": "HOST:PORT", "dialect": "NAME", "profile": "NAME", "rpm": "N", "tpm": "N", "burst": "D", "window": "D", "latency": "D",
		"sigma": "S", "retry-after": "MODE", "errors": "KIND=SHARE", "outage": "SPAN", "quota-after": "N", "seed": "N",
	})
}

// Config returns the configuration of the profile, changed by the flags that are given.
func (f *SimFlags) Config(fs *pflag.FlagSet) (sim.Config, error) {
	cfg, err := settings.Profile(f.profile)
	if err != nil {
		return cfg, err
	}
	cfg.TrackIDs = true // so that the books show double answers
	for name, apply := range map[string]func() error{
		"dialect":     func() error { return setFace(&cfg.Face, f.dialect) },
		"rpm":         func() error { cfg.RPM = f.rpm; return nil },
		"tpm":         func() error { cfg.TPM = f.tpm; return nil },
		"burst":       func() error { cfg.Burst = f.burst; return nil },
		"window":      func() error { cfg.Window = f.window; return nil },
		"latency":     func() error { cfg.Latency = sim.Latency{Median: f.latency, Sigma: cfg.Latency.Sigma}; return nil },
		"sigma":       func() error { return nil }, // after the latency, below
		"headers":     func() error { cfg.Headers = f.headers; return nil },
		"retry-after": func() error { return setMode(&cfg.RetryAfter, f.retryAfter) },
		"errors":      func() error { return setRates(&cfg.Errors, f.errors) },
		"outage":      func() error { return setOutages(&cfg.Outages, f.outage) },
		"quota-after": func() error { cfg.QuotaAfter = f.quotaAfter; return nil },
		"seed":        func() error { cfg.Seed = f.seed; return nil },
	} {
		if !fs.Changed(name) {
			continue
		}
		if err := apply(); err != nil {
			return cfg, err
		}
	}
	if fs.Changed("sigma") {
		cfg.Latency.Sigma = f.sigma
	}
	if err := cfg.Validate(); err != nil {
		return cfg, exit.Refuse("%s: see headrace sim --help", exit.OwnLines(strings.ReplaceAll(exit.PlainText(err), "\nsim: ", "\n")))
	}
	return cfg, nil
}

// setMode reads the value of --retry-after.
func setMode(to *sim.Mode, word string) error {
	for mode, w := range modeWords {
		if w == word {
			*to = mode
			return nil
		}
	}
	return exit.Refuse("--retry-after: %q is not known: use never, always or sometimes", word)
}

// setRates reads the value of --errors, such as "500=0.1,reset=0.02".
func setRates(to *sim.Rates, words string) error {
	fields := map[string]*float64{
		"500": &to.Server500, "503": &to.Overloaded503, "400": &to.BadRequest400,
		"reset": &to.Reset, "hang": &to.Hang, "truncated": &to.Truncated, "malformed": &to.Malformed200,
		"stream-error": &to.StreamError, "stream-silent": &to.StreamSilent,
	}
	for word := range strings.SplitSeq(words, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		rate, err := strconv.ParseFloat(value, 64)
		field := fields[name]
		if field == nil || err != nil {
			return exit.Refuse("--errors: %q is invalid: write KIND=SHARE, such as 500=0.1, with KIND 400, 500, 503, reset, hang, truncated, malformed, stream-error or stream-silent", word)
		}
		*field = rate
	}
	return nil
}

// setOutages reads "10s+5s,1m+30s:hang".
func setOutages(to *[]sim.Outage, words string) error {
	for word := range strings.SplitSeq(words, ",") {
		o, err := parseOutage(strings.TrimSpace(word))
		if err != nil {
			return exit.Refuse("--outage: %q is invalid: write FROM+FOR or FROM+FOR:MODE, such as 10s+5s:hang", word)
		}
		*to = append(*to, o)
	}
	return nil
}

// parseOutage reads "10s+5s:hang". Without a mode, calls are answered by 503. Whether there is such a
// mode is checked later.
func parseOutage(word string) (o sim.Outage, err error) {
	span, mode, named := strings.Cut(word, ":")
	from, length, ok := strings.Cut(span, "+")
	if !ok {
		return o, fmt.Errorf("no + in %q", span)
	}
	if o.From, err = time.ParseDuration(from); err != nil {
		return o, err
	}
	if o.For, err = time.ParseDuration(length); err != nil {
		return o, err
	}
	o.Mode = sim.Outage503
	if named {
		o.Mode = sim.OutageMode(mode)
	}
	return o, nil
}
