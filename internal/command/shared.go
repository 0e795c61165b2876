package command

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/progress"
)

// Flags are groups of the flags of run, for a command of an Extra that has some of them.
// Their names, defaults, variables and checks are the same.
type Flags uint

// The groups. Each flag of run is in one of them, except --cluster and --help.
const (
	Whom   Flags = 1 << iota // the called provider: provider, base-url, region, preset, text, …
	Keys                     // the place of the key: api-key-env, api-key-file
	Net                      // how this machine reaches the provider: header, ca-file, client-cert, client-key
	Input                    // how to read a line, and its defaults: format, template, model, …
	Files                    // what a run writes, and whether it continues: output, errors, order, fresh, …
	Pace                     // how fast: rpm, concurrency, …
	Tries                    // when to give up an item: max-attempts, timeout, stream, item-timeout, …
	Ends                     // when a run on this machine stops: first-answer, outage-patience, …
	Until                    // for how long: deadline
	Fails                    // how many items may fail: max-failures
	Costs                    // price, prices
	Faces                    // what a run shows: color, long-wait
	Says                     // in which form: progress, log-level, log-format, log-file
	Config                   // config, seed
)

// flagsIn names the flags of each group.
var flagsIn = map[Flags]string{
	Whom:   "provider base-url insecure-http region project location resource preset sim-profile text",
	Keys:   "api-key-env api-key-file",
	Net:    "header ca-file client-cert client-key",
	Input:  "model endpoint format template system param max-tokens on-bad-line on-untranslatable limit filtered",
	Files:  "output errors timeline order retry-failed fresh forget durable",
	Pace:   "concurrency rpm tpm input-tpm output-tpm burst latency-target law max-bodies",
	Tries:  "max-attempts timeout stream stream-idle item-timeout",
	Ends:   "first-answer outage-patience keep-going",
	Until:  "deadline",
	Fails:  "max-failures",
	Costs:  "price prices",
	Faces:  "color long-wait",
	Says:   "progress log-level log-format log-file",
	Config: "config seed",
}

// setOf names the flags of the groups that were set anywhere.
func (f *runFlags) setOf(groups Flags) (names []string) {
	f.all.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && groups.has(flag.Name) {
			names = append(names, flag.Name)
		}
	})
	return names
}

// has reports whether a flag is in one of the groups.
func (g Flags) has(name string) bool {
	for one, names := range flagsIn {
		if g&one != 0 && strings.Contains(" "+names+" ", " "+name+" ") {
			return true
		}
	}
	return false
}

// Settings holds the values of run's flags, for another command that has some of them; a
// flag that it does not have has its default. They belong to one goroutine.
//
//	NewSettings ─ Register ─ (cobra parses) ─ Complete ─▶ Reader, Told, Face, Connect
type Settings struct {
	r     *runner
	flags Flags
	own   *pflag.FlagSet // the flags that the command has
}

// NewSettings returns the settings of a command with these flags.
func NewSettings(w *World, flags Flags) *Settings {
	f := &runFlags{}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(all)
	s := settingsOf(w, f, "")
	s.flags, s.own = flags, all
	return s
}

// settingsOf returns the settings of complete flags.
func settingsOf(w *World, f *runFlags, input string) *Settings {
	ctx, stop := context.WithCancelCause(context.Background())
	quiet := &halt{drain: make(chan struct{}), ctx: ctx, stop: stop} // nothing stops it until a call of Watch
	r := &runner{World: w, flags: f, input: input, halt: quiet, began: w.clock.Now(), watched: make(chan struct{})}
	return &Settings{r: r, flags: ^Flags(0), own: f.all}
}

// Register adds the flags to the command. Its help shows them under the headings of run,
// after the command's own flags.
func (s *Settings) Register(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	s.own = cmd.Flags()
	s.r.flags.all.VisitAll(func(f *pflag.Flag) {
		if s.flags.has(f.Name) {
			s.own.AddFlag(f)
		}
	})
	if s.flags&Whom != 0 {
		completeProvider(cmd)
	}
	groupFlags(cmd, runGroups)
}

// Complete sets missing flags from the environment, then from the file of --config, and
// checks them. Call it once, when the command line is parsed. The command ends with its
// error, and has then called nothing. A file may set flags that the command does not have,
// so that one file serves all commands.
func (s *Settings) Complete() error {
	return s.r.flags.complete(s.own, s.r.env)
}

// Cluster returns the value of --cluster: an address, ClusterTrial, or "" where it is not
// given. An address may contain a token.
func (s *Settings) Cluster() string { return s.r.flags.cluster }

// Output returns the name of the output; "-" is standard output.
func (s *Settings) Output() string { return s.r.flags.output }

// Errors returns the name of the errors file: that of --errors, or one derived from the
// output's.
func (s *Settings) Errors() string { return s.r.flags.errorsPath() }

// CheckFolders refuses an output or an errors file on this machine whose folder does not exist.
func (s *Settings) CheckFolders() error {
	local := slices.DeleteFunc([]string{s.Output(), s.Errors()}, func(path string) bool { return strings.Contains(path, "://") })
	if text := noFolder(local...); text != "" {
		return refuse("%s", text)
	}
	return nil
}

// Reader says how to read the lines of an input of that name: the name gives the format
// where no flag does.
func (s *Settings) Reader(name string) prompts.Config { return s.r.flags.readerConfig(name) }

// Concurrency returns the most calls that may be in flight.
func (s *Settings) Concurrency() int { return s.r.flags.concurrency }

// Options returns the options of a run whose lanes have bounds of their own, as [Calls.Bound]
// gives them.
func (s *Settings) Options() []batch.Option {
	return []batch.Option{batch.WithAttemptTimeout(0), batch.WithLongWait(s.r.flags.longWait)}
}

// Lines says how to read an input's lines and write results, as [Calls.Job] does, for a
// command that makes no calls. It needs no key.
func (s *Settings) Lines() promptfile.Config {
	r := s.r
	if r.backend == nil {
		r = &runner{World: s.r.World, flags: s.r.flags, halt: s.r.halt}
		r.backend = &backend{name: r.flags.name(), shared: r.flags.vendor.ByAccount || r.flags.provider == providerSim}
	}
	job := r.job(promptfile.Input{})
	job.Watch = promptfile.Watch{}
	return job
}

// Clock returns the clock of the command. Seed returns that of --seed, or another each time.
func (s *Settings) Clock() clockwork.Clock { return s.r.clock }

// Seed is explained at Clock.
func (s *Settings) Seed() uint64 {
	if s.r.flags.seeded {
		return s.r.flags.seed
	}
	return s.r.chance
}

// GoOn ends a command that the same command line can continue: that line is the last one
// shown.
func (s *Settings) GoOn(code int, format string, args ...any) error {
	return s.r.failAgain(code, format, args...)
}

// BadLines ends a run whose input has faults. The complaints about its lines have the form that editors jump to.
func (s *Settings) BadLines(text string, complaints []string) error {
	end := s.r.ending(ExitUsage, "%s: correct or remove what is wrong, then run:", text)
	for _, one := range complaints {
		end.list = append(end.list, errors.New(one))
	}
	return end
}

// RetriesFailed reports whether items that failed for good before are tried again, and
// StartsOver whether earlier results do not count.
func (s *Settings) RetriesFailed() bool { return s.r.flags.retryFailed }

// StartsOver is explained at RetriesFailed.
func (s *Settings) StartsOver() bool { return s.r.flags.fresh }

// Skips reports whether bad lines, and chats that the provider's dialect cannot express, are
// left out instead of ending the command.
func (s *Settings) Skips() (bad, untranslatable bool) {
	return s.r.flags.skipsBadLines(), s.r.flags.skipsUntranslatable()
}

// Told lists the flags of the groups that were set anywhere, by name. With them another
// machine reads an input as this one does: [Calls.For]. A value may be a part of every
// prompt. A flag of a group holds no key, except a base-url into which its author put one.
func (s *Settings) Told(groups Flags) map[string]string {
	told := map[string]string{}
	s.own.VisitAll(func(f *pflag.Flag) {
		if f.Changed && groups.has(f.Name) {
			told[f.Name] = f.Value.String()
		}
	})
	return told
}

// Bounds lists the flags of Tries, set or not. They decide the fate of an item, and so are the same wherever it is
// called.
func (s *Settings) Bounds() map[string]string {
	all := map[string]string{}
	s.r.flags.all.VisitAll(func(f *pflag.Flag) {
		if Tries.has(f.Name) {
			all[f.Name] = f.Value.String()
		}
	})
	return all
}

// Face opens the log and the display that the flags ask for; close ends both, with no report. A
// command without Faces shows no run: it writes as lines what --progress would show in a panel
// or next to a bar.
func (s *Settings) Face() (console *progress.Console, log *slog.Logger, closed func(), err error) {
	if how := &s.r.flags.progress; s.flags&Faces == 0 && *how != progressJSON && *how != progressNone {
		*how = progressPlain
	}
	manner := s.r.manner()
	s.r.every, s.r.console = manner.Every(), progress.Open(manner, s.r.clock.Now)
	closeLog, err := s.r.openLog()
	if err != nil {
		s.r.console.Close(nil)
		return nil, nil, nil, err
	}
	return s.r.console, s.r.log, func() { closeLog(); s.r.console.Close(nil) }, nil
}

// Every returns the period in which the display that Face opens shows how a run stands.
func (s *Settings) Every() time.Duration { return s.r.every }

// Begin tells the display that Face has opened about the run: its input, its start, and its number
// of items, if that is known.
func (s *Settings) Begin(input string, items *int) {
	s.r.input = input
	start := s.r.startOf(nil)
	start.Items = items
	s.r.console.Begin(start, s.r.began)
}

// Watch waits for signals and for the --deadline until closed is called. The first of them
// closes drain: start nothing more. A signal after that cancels calls: abandon what is in
// flight. One more has its usual effect. Watch says each in words for people.
func (s *Settings) Watch(ctx context.Context, say func(event.Code, string)) (drain <-chan struct{}, calls context.Context, closed func()) {
	s.r.halt = s.r.watch(ctx, s.r.flags.deadline, say)
	return s.r.halt.drain, s.r.halt.ctx, s.r.halt.close
}

// TakeDeadline returns --deadline to a command that has others keep it; Watch then ignores it. 0
// is none.
func (s *Settings) TakeDeadline() time.Duration {
	d := s.r.flags.deadline
	s.r.flags.deadline = 0
	return d
}

// MaxFailures returns --max-failures: a number of items, or a share of them. Both are 0
// without a bound.
func (s *Settings) MaxFailures() (items int, share float64) {
	return s.r.flags.maxFailures.items, s.r.flags.maxFailures.share
}

// NameFailed tells the verdict which items have failed: the first of them by their lines in the
// errors file, and the number of all.
func (s *Settings) NameFailed(first []journal.Line, all int) {
	f := &s.r.failed
	for i := range first[:min(len(first), mostNamed)] {
		l := &first[i]
		f.named = append(f.named, s.r.failedAs(l.CustomID, l.Headrace.Calls, faultIn(l)))
	}
	f.unsaid = all - len(f.named)
}

// Verdict returns how a run with these sums ends, as headrace run does: the code, the words,
// and the command that continues it. Nil means that every item succeeded.
func (s *Settings) Verdict(sums *promptfile.Sums) error { return s.r.verdict(sums) }
