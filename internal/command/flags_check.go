package command

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/limiter"
)

func (f *runFlags) checkOutput(needed bool) error {
	if needed && f.output == "" {
		return fmt.Errorf("no output: name a file with -o %s, or standard output with -o -", resultsName)
	}
	if f.errors == "-" {
		return errors.New(`--errors "-": standard output carries results only: name a file`)
	}
	return nil
}

// checkCluster refuses an empty address, which an unset variable gives: the command would run on this machine alone.
func (f *runFlags) checkCluster() error {
	if f.cluster == "" && f.all.Changed("cluster") {
		return errors.New("--cluster= has no address: give the line that headrace hub prints, or write --cluster alone for a trial in this process")
	}
	return nil
}

// variableName matches the names that shells allow for a variable. A key does not match, and
// so no error repeats it.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkKeyEnv refuses a text that cannot be a variable's name, and one that names no
// variable and looks like a key. It repeats neither.
func (f *runFlags) checkKeyEnv(env func(string) (string, bool)) error {
	_, set := env(f.keyEnv)
	if f.sendsNoKey() && f.keyFile != "" {
		return errors.New("--api-key-env none sends no key, and --api-key-file names one: remove one of the two")
	}
	if !variableName.MatchString(f.keyEnv) || !set && looksLikeKey(f.keyEnv) {
		return errors.New("--api-key-env takes the name of a variable, not a key: put the key into a variable and give its name")
	}
	return nil
}

// keyEnvNone is the value of --api-key-env with which no key is sent: it then does not displace
// a header of the user's.
const keyEnvNone = "none"

func (f *runFlags) sendsNoKey() bool { return f.keyEnvGiven && f.keyEnv == keyEnvNone }

// checkInClear refuses to send, unencrypted to the vendor's own hosts, a key that the user has
// not named. It also applies where others have the key, as workers do.
func (f *runFlags) checkInClear() error {
	if f.planned != nil || f.keyEnvGiven || f.keyFile != "" || !f.isInClear() {
		return nil
	}
	return f.inClear("what proves who calls")
}

// isInClear reports whether calls go unencrypted to the vendor's own hosts without the user's
// permission.
func (f *runFlags) isInClear() bool {
	u, err := url.Parse(f.baseURL)
	return err == nil && u.Scheme == "http" && !f.insecureHTTP && f.vendor.Answers(f.baseURL)
}

// inClear is the fault of an address to which a secret would go unencrypted.
func (f *runFlags) inClear(what string) error {
	u, err := url.Parse(f.baseURL)
	if err != nil {
		return err
	}
	safe := url.URL{Scheme: "https", Host: strings.TrimSuffix(u.Host, ":80"), Path: u.Path}
	return fmt.Errorf("%s: it says http, so %s would be sent unencrypted to %s: try %s, or add --insecure-http to allow that",
		cmp.Or(f.madeOf, "--base-url"), what, u.Hostname(), withoutKeys(safe.String()))
}

// leastKey is the least length of a text that looks like a key by its letters alone. The
// shortest keys that providers give are longer, and most names of variables are shorter.
const leastKey = 20

// looksLikeKey is true of the known shapes, and of long texts with digits and small letters:
// names of variables seldom have both.
func looksLikeKey(text string) bool {
	return withoutKeys(text) != text ||
		len(text) >= leastKey && strings.ContainsAny(text, "0123456789") && strings.ToUpper(text) != text
}

func (f *inputFlags) checkEndpoint() error {
	return oneOf("endpoint", f.endpoint, prompts.Endpoints()...)
}

func (f *runFlags) limits() limiter.Limits {
	return limiter.Limits{RPM: f.rpm, TPM: f.tpm, InputTPM: f.inputTPM, OutputTPM: f.outputTPM, Burst: f.burst}
}

func (f *runFlags) checkLimits() error {
	if f.planned != nil {
		return checkLimits(f.limits(), "means not known")
	}
	return checkLimits(f.limits(), "learns it")
}

func (f *runFlags) checkPlanned() error {
	if f.planned == nil {
		return nil
	}
	return f.planned()
}

// checkLimits names each invalid limit. The meaning of 0 differs between commands.
func checkLimits(l limiter.Limits, zero string) error {
	faults := []error{atLeast("burst", l.Burst, 0)}
	if l.Burst > limiter.MaxBurst {
		faults = append(faults, fmt.Errorf("--burst: %v is too large: at most %v", l.Burst, limiter.MaxBurst))
	}
	for _, one := range []struct {
		flag  string
		value float64
	}{{"rpm", l.RPM}, {"tpm", l.TPM}, {"input-tpm", l.InputTPM}, {"output-tpm", l.OutputTPM}} {
		if (limiter.Limits{RPM: one.value}).Validate() != nil {
			faults = append(faults, fmt.Errorf("--%s: %v is not a limit: want a number of 0 or more; 0 %s", one.flag, one.value, zero))
		}
	}
	return errors.Join(faults...)
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

func (f *inputFlags) parseTemplate() (err error) {
	if f.template == "" {
		return nil
	}
	if f.parsed, err = prompts.ParseTemplate(f.template); err != nil {
		return fmt.Errorf("--template: %s: write fields as in {{.text}}", plainText(err))
	}
	return nil
}

// formatOf returns the format of the input of that name. It ignores an ending that says how the
// file is packed.
func (f *inputFlags) formatOf(name string) prompts.Format {
	format := f.format
	if format == formatAuto {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".gz"), ".zst")
		if strings.HasSuffix(name, ".csv") {
			format = formatCSV
		}
	}
	switch format {
	case formatText:
		return prompts.FormatText
	case formatCSV:
		return prompts.FormatCSV
	}
	return prompts.FormatJSONL
}

func (f *inputFlags) skipsBadLines() bool { return f.onBadLine == badLineSkip }

func (f *inputFlags) skipsUntranslatable() bool { return f.onUntranslatable == badLineSkip }

func (f *runFlags) durability() saver.Durability {
	if f.durable == durableOS {
		return saver.OS
	}
	return saver.Sync
}

func atLeast[N int | time.Duration](flag string, n, least N) error {
	if n < least {
		return fmt.Errorf("--%s: %v is too small: at least %v", flag, n, least)
	}
	return nil
}

func atMost(flag string, n, most int) error {
	if n > most {
		return fmt.Errorf("--%s: %d is too large: at most %d", flag, n, most)
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
