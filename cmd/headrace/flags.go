package main

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/jsonl"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// runFlags are the flags of run, by name. The names are a promise.
type runFlags struct {
	output, errors    string
	provider, baseURL string
	keyEnv            string
	keyEnvGiven       bool
	model, endpoint   string
	concurrency       int
	rpm, tpm          float64
	maxAttempts       int
	timeout           time.Duration
	progress          string
	logLevel          string
	limit             int
	seed              uint64
	seeded            bool
}

// defaultKeyEnv holds OpenAI's key, as in their own libraries.
const defaultKeyEnv = "OPENAI_API_KEY"

// Values of --progress.
const (
	progressAuto  = "auto"
	progressBar   = "bar"
	progressPlain = "plain"
	progressJSON  = "json"
	progressNone  = "none"
)

// Values of --provider.
const (
	providerOpenAI = "openai"
	providerSim    = "sim"
)

func (f *runFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVarP(&f.output, "output", "o", "", "where results go (required); - is standard output")
	fs.StringVar(&f.errors, "errors", "", "where failed items go (default: OUTPUT with .errors before its ending)")
	fs.StringVar(&f.provider, "provider", providerOpenAI, "whom to call: openai, or sim, which is simulated and needs no key")
	fs.StringVar(&f.baseURL, "base-url", "", "another server that speaks OpenAI's dialect, such as http://127.0.0.1:8080/v1")
	fs.StringVar(&f.keyEnv, "api-key-env", defaultKeyEnv, "environment variable that holds the key")
	fs.StringVar(&f.model, "model", "", "model of lines that name none")
	fs.StringVar(&f.endpoint, "endpoint", jsonl.ChatCompletions, "endpoint of lines that name none")
	fs.IntVarP(&f.concurrency, "concurrency", "c", batch.DefaultConcurrency, "most calls in flight")
	fs.Float64Var(&f.rpm, "rpm", 0, "requests a minute that each model is allowed; 0 learns it")
	fs.Float64Var(&f.tpm, "tpm", 0, "tokens a minute that each model is allowed; 0 learns it")
	fs.IntVar(&f.maxAttempts, "max-attempts", batch.DefaultMaxAttempts, "tries at an item; being throttled is none")
	fs.DurationVar(&f.timeout, "timeout", batch.DefaultAttemptTimeout, "longest call; waiting to be sent does not count, 0 is no bound")
	fs.StringVar(&f.progress, "progress", progressAuto, "auto, bar, plain, json or none, on standard error")
	fs.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
	fs.IntVar(&f.limit, "limit", 0, "only the first items; 0 is all")
	fs.Uint64Var(&f.seed, "seed", 0, "makes jitter and simulation reproducible (default: another one each time)")
	nameValues(fs, map[string]string{
		"output": "FILE", "errors": "FILE", "provider": "NAME", "base-url": "URL", "api-key-env": "NAME",
		"model": "NAME", "endpoint": "PATH", "concurrency": "N", "rpm": "N", "tpm": "N", "max-attempts": "N",
		"timeout": "D", "progress": "MODE", "log-level": "LEVEL", "limit": "N", "seed": "N",
	})
}

// named is a flag's value with a word for it in the help.
type named struct {
	pflag.Value
	word string
}

// Type is what the help shows.
func (n named) Type() string { return n.word }

// nameValues gives flags the words for their values. A default of no time is not
// shown: what it means is said.
func nameValues(fs *pflag.FlagSet, words map[string]string) {
	for flag, word := range words {
		f := fs.Lookup(flag)
		f.Value = named{f.Value, word}
		if f.DefValue == "0s" {
			f.DefValue = "0"
		}
	}
}

// environmentPrefix begins the name of each flag's variable.
const environmentPrefix = "HEADRACE_"

func environmentName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that were not given from their variables. An
// empty variable is none.
func fromEnvironment(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	var faults []error
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := env(environmentName(f.Name))
		if f.Changed || !ok || value == "" || f.Name == "help" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is no %s: correct or unset it", environmentName(f.Name), value, kindOfFlag(f)))
		}
	})
	return usage(faults...)
}

// usage makes one refusal of all that is wrong; nil if nothing is.
func usage(faults ...error) error {
	if err := errors.Join(faults...); err != nil {
		return refuse("%v", err)
	}
	return nil
}

// complete takes what was not given from the environment and checks everything
// that can be checked without looking at a file.
func (f *runFlags) complete(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	if err := fromEnvironment(fs, env); err != nil {
		return err
	}
	f.seeded, f.keyEnvGiven = fs.Changed("seed"), fs.Changed("api-key-env")
	return usage(
		f.checkOutput(),
		f.checkProvider(),
		f.checkEndpoint(),
		f.checkLimits(),
		atLeast("concurrency", f.concurrency, 1),
		atMost("concurrency", f.concurrency, machine.MaxConcurrency),
		atLeast("max-attempts", f.maxAttempts, 1),
		atLeast("limit", f.limit, 0),
		atLeast("timeout", f.timeout, 0),
		oneOf("progress", f.progress, progressAuto, progressBar, progressPlain, progressJSON, progressNone),
		f.checkLevel(),
	)
}

func (f *runFlags) checkOutput() error {
	if f.output == "" {
		return fmt.Errorf("no output: name a file with -o %s, or standard output with -o -", resultsName)
	}
	if f.errors == "-" {
		return errors.New(`--errors "-": standard output carries results only: name a file`)
	}
	return nil
}

// variableName is what shells let a variable be called. A key is not: it is not
// repeated.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (f *runFlags) checkProvider() error {
	if !variableName.MatchString(f.keyEnv) {
		return errors.New("--api-key-env: it takes the name of a variable, not a key: put the key into the variable and name that")
	}
	switch f.provider {
	case providerOpenAI, providerSim:
		return nil
	}
	return fmt.Errorf("--provider: %q is not known: use openai (with --base-url for any endpoint of its dialect) or sim", f.provider)
}

func (f *runFlags) checkEndpoint() error {
	return oneOf("endpoint", f.endpoint, jsonl.ChatCompletions, jsonl.Embeddings, jsonl.Responses, jsonl.Completions)
}

func (f *runFlags) limits() limiter.Limits { return limiter.Limits{RPM: f.rpm, TPM: f.tpm} }

func (f *runFlags) checkLimits() error {
	if f.limits().Validate() == nil {
		return nil
	}
	return errors.New("--rpm, --tpm: a limit is a number of 0 or more: 0 learns it")
}

func (f *runFlags) checkLevel() error {
	if _, err := f.level(); err != nil {
		return oneOf("log-level", f.logLevel, "debug", "info", "warn", "error")
	}
	return nil
}

func (f *runFlags) level() (slog.Level, error) {
	var l slog.Level
	err := l.UnmarshalText([]byte(f.logLevel))
	return l, err
}

func atLeast[N int | time.Duration](flag string, n, least N) error {
	if n < least {
		return fmt.Errorf("--%s: %v is too little: at least %v", flag, n, least)
	}
	return nil
}

func atMost(flag string, n, most int) error {
	if n > most {
		return fmt.Errorf("--%s: %d is too much: at most %d", flag, n, most)
	}
	return nil
}

func oneOf(flag, value string, words ...string) error {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return fmt.Errorf("--%s: %q is not known: use %s or %s", flag, value,
		strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
