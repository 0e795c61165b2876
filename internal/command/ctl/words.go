package ctl

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/settings"
)

// The words.
const (
	Status      = "status"
	Pause       = "pause"
	Resume      = "resume"
	Drain       = "drain"
	Concurrency = "concurrency"
	Limit       = "limit"
	MaxCost     = "max-cost"
	Reset       = "reset"
	LogLevel    = "log-level"
	Report      = "report"
)

// A word is what may stand behind the output.
type word struct {
	name, args, means string
}

// words lists all of them, in the order of the help.
var words = []word{
	{Status, "", "how it stands; --json prints the event of --progress json"},
	{Pause, "", "start no further call; calls in flight finish"},
	{Resume, "", "go on after a pause"},
	{Drain, "", "end as by Ctrl-C: calls in flight finish and are saved (exit code 130)"},
	{Concurrency, "N", "most calls in flight, up to four times the -c of the start"},
	{Limit, "[LANE] rpm=N tpm=N input-tpm=N output-tpm=N", "limits to keep to, of all lanes or of one; 0 learns it again"},
	{MaxCost, "USD", "never spend more, for a run that was started with --max-cost"},
	{Reset, "[LANE]", "let a lane flow again at once, with nothing held against it"},
	{LogLevel, "LEVEL", "debug, info, warn or error"},
	{Report, "FILE", "write a report so far: FILE ends in .html, .md or .json"},
}

// A Command is what a target is to do.
type Command struct {
	Word   string
	N      int                // of concurrency
	USD    float64            // of max-cost
	Lane   string             // of limit and reset; "": none is named
	Limits map[string]float64 // of limit, by name: those that are given
	Level  slog.Level         // of log-level
	File   string             // of report
}

// limitNames lists the limits that may be set, as flags name them.
var limitNames = []string{"rpm", "tpm", "input-tpm", "output-tpm"}

// Parse reads a command from its words. An error says what is allowed.
func Parse(list []string) (cmd Command, err error) {
	if len(list) == 0 {
		return Command{Word: Status}, nil
	}
	cmd.Word, list = list[0], list[1:]
	spec := findWord(cmd.Word)
	if spec == nil {
		return cmd, fmt.Errorf("unknown word %q: %swant %s", cmd.Word, settings.DidYouMean(settings.Nearest(cmd.Word, wordNames())), strings.Join(wordNames(), ", "))
	}
	leastArgs, mostArgs := 0, len(strings.Fields(spec.args))
	if cmd.Word != Reset {
		leastArgs = min(mostArgs, 1)
	}
	switch form := strings.TrimSpace(cmd.Word + " " + spec.args); {
	case len(list) < leastArgs:
		return cmd, fmt.Errorf("%s: want %s", cmd.Word, form)
	case len(list) > mostArgs:
		return cmd, fmt.Errorf("%s: %q is too much: want %s", cmd.Word, list[mostArgs], form)
	}
	switch cmd.Word {
	case Concurrency:
		cmd.N, err = strconv.Atoi(list[0])
		if err != nil || cmd.N < 1 || cmd.N > machine.MaxConcurrency {
			return cmd, fmt.Errorf("concurrency %q is invalid: want a number from 1 to %d", list[0], machine.MaxConcurrency)
		}
	case MaxCost:
		cmd.USD, err = strconv.ParseFloat(strings.TrimPrefix(list[0], "$"), 64)
		if err != nil || !(cmd.USD > 0 && cmd.USD <= batch.MostBudget) {
			return cmd, fmt.Errorf("max-cost %q is invalid: want USD, more than 0 and at most %.0f", list[0], batch.MostBudget)
		}
	case LogLevel:
		if err := cmd.Level.UnmarshalText([]byte(list[0])); err != nil || !isLevel(list[0]) {
			return cmd, fmt.Errorf("log-level %q is invalid: want debug, info, warn or error", list[0])
		}
	case Report:
		cmd.File = list[0]
	case Reset:
		cmd.Lane = strings.Join(list, "")
	case Limit:
		return cmd, cmd.readLimits(list)
	}
	return cmd, nil
}

// isLevel reports whether a text is one of our log levels. slog would also read others, such as warn+2.
func isLevel(text string) bool {
	switch strings.ToLower(text) {
	case "debug", "info", "warn", "error":
		return true
	}
	return false
}

// readLimits reads the arguments of limit: an optional lane, then pairs such as rpm=N.
func (c *Command) readLimits(list []string) error {
	if !strings.Contains(list[0], "=") {
		c.Lane, list = list[0], list[1:]
	}
	c.Limits = map[string]float64{}
	for _, pair := range list {
		name, value, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseFloat(value, 64)
		switch _, twice := c.Limits[name]; {
		case !slices.Contains(limitNames, name):
			return fmt.Errorf("limit %q is not known: want %s=N", pair, strings.Join(limitNames, "=N, "))
		case err != nil || !(n >= 0) || math.IsInf(n, 0):
			return fmt.Errorf("limit %q is invalid: want a number a minute, and 0 to learn it", pair)
		case twice:
			return fmt.Errorf("limit %s is given twice: want it once", name)
		}
		c.Limits[name] = n
	}
	if len(c.Limits) == 0 {
		return fmt.Errorf("limit: want at least one of %s=N", strings.Join(limitNames, "=N, "))
	}
	return nil
}

// On returns the limits with the command's changes.
func (c *Command) On(l batch.Limits) batch.Limits {
	for name, n := range c.Limits {
		switch name {
		case "rpm":
			l.RPM = n
		case "tpm":
			l.TPM = n
		case "input-tpm":
			l.InputTPM = n
		case "output-tpm":
			l.OutputTPM = n
		}
	}
	return l
}

// LimitWords formats limits as the command takes them; "none" if there are none.
func LimitWords(l batch.Limits) string {
	var parts []string
	for k, n := range []float64{l.RPM, l.TPM, l.InputTPM, l.OutputTPM} {
		if n > 0 {
			parts = append(parts, limitNames[k]+"="+strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

// AllWords formats the limits of all lanes, and counts the lanes that have limits of their own.
func AllWords(l batch.Limits, others map[string]batch.Limits) string {
	if len(others) == 0 {
		return LimitWords(l)
	}
	return fmt.Sprintf("%s, but for %d of the lanes", LimitWords(l), len(others))
}

// findWord returns the word of that name; nil if there is none.
func findWord(name string) *word {
	for k := range words {
		if words[k].name == name {
			return &words[k]
		}
	}
	return nil
}

// wordNames lists the names of all words, in the order of the help.
func wordNames() (list []string) {
	for k := range words {
		list = append(list, words[k].name)
	}
	return list
}
