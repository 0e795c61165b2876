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

// Flags are groups of the flags of run, for a command of an Extra that has some of them:
// with the same names, defaults, variables and checks.
type Flags uint

// The groups. Each flag of run is in one of them, but for --cluster and --help.
const (
	Whom   Flags = 1 << iota // whom to call: provider, base-url, region, preset, text, …
	Keys                     // where the key is: api-key-env, api-key-file
	Net                      // how this machine reaches the provider: header, ca-file, client-cert, client-key
	Input                    // how a line is read, and what it asks: format, template, model, …
	Files                    // what a run writes, and whether it goes on: output, errors, order, fresh, …
	Pace                     // how fast: rpm, concurrency, …
	Tries                    // when an item is given up: max-attempts, timeout, stream, item-timeout, …
	Ends                     // when a run on this machine stops: first-answer, outage-patience, …
	Until                    // for how long: deadline
	Fails                    // how many items may fail: max-failures
	Costs                    // price, prices
	Faces                    // what is shown of a run: color, long-wait
	Says                     // how things are said: progress, log-level, log-format, log-file
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

// setOf names the flags of the groups that were set, wherever.
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

// Settings are what the flags of run come to, for another command that has some of them; a
// flag that it has not is at its default. They belong to one goroutine.
//
//	NewSettings ─ Register ─ (cobra parses) ─ Complete ─▶ Reader, Told, Face, Connect
type Settings struct {
	r     *runner
	flags Flags
	own   *pflag.FlagSet // those that the command has
}

// NewSettings are those of a command with these flags.
func NewSettings(w *World, flags Flags) *Settings {
	f := &runFlags{}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(all)
	s := settingsOf(w, f, "")
	s.flags, s.own = flags, all
	return s
}

// settingsOf are those of flags that are complete.
func settingsOf(w *World, f *runFlags, input string) *Settings {
	ctx, stop := context.WithCancelCause(context.Background())
	quiet := &halt{drain: make(chan struct{}), ctx: ctx, stop: stop} // until Watch is called nothing stops it
	r := &runner{World: w, flags: f, input: input, halt: quiet, began: w.clock.Now(), watched: make(chan struct{})}
	return &Settings{r: r, flags: ^Flags(0), own: f.all}
}

// Register gives the command its flags. In its help they stand under the headings of run,
// behind those that are the command's alone.
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

// Complete takes what was not given from the environment, then from the file of --config,
// and checks it. It is to be called once, when the command line is parsed. Its error is one
// to end with, and nothing was called then. A file may set flags that the command has not:
// one file is for all commands.
func (s *Settings) Complete() error {
	return s.r.flags.complete(s.own, s.r.env)
}

// Cluster is the value of --cluster: an address, ClusterTrial, or "" where it is not given.
// An address may have a token in it.
func (s *Settings) Cluster() string { return s.r.flags.cluster }

// Output is the name of the output; "-" is standard output.
func (s *Settings) Output() string { return s.r.flags.output }

// Errors is the name of the errors file: that of --errors, or one that is made of the output's.
func (s *Settings) Errors() string { return s.r.flags.errorsPath() }

// CheckFolders refuses an output or an errors file on this machine whose folder does not exist.
func (s *Settings) CheckFolders() error {
	local := slices.DeleteFunc([]string{s.Output(), s.Errors()}, func(path string) bool { return strings.Contains(path, "://") })
	if text := noFolder(local...); text != "" {
		return refuse("%s", text)
	}
	return nil
}

// Reader is how the lines of an input of that name are read: the name says the format where
// no flag does.
func (s *Settings) Reader(name string) prompts.Config { return s.r.flags.readerConfig(name) }

// Concurrency is how many calls may be in flight at most.
func (s *Settings) Concurrency() int { return s.r.flags.concurrency }

// Options are those of a run whose lanes have bounds of their own, as [Calls.Bound] gives them.
func (s *Settings) Options() []batch.Option {
	return []batch.Option{batch.WithAttemptTimeout(0), batch.WithLongWait(s.r.flags.longWait)}
}

// Lines are how an input's lines are read and results written, as [Calls.Job] tells, for
// whoever makes no calls: no key is needed for them.
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

// Clock is the time by which the settings' command runs, and Seed the chance: of --seed, or another
// each time.
func (s *Settings) Clock() clockwork.Clock { return s.r.clock }

// Seed is explained at Clock.
func (s *Settings) Seed() uint64 {
	if s.r.flags.seeded {
		return s.r.flags.seed
	}
	return s.r.chance
}

// GoOn is an end from which the same command line goes on: it is the last that is said.
func (s *Settings) GoOn(code int, format string, args ...any) error {
	return s.r.failAgain(code, format, args...)
}

// BadLines is how a run ends whose input has faults, with the complaints about its lines in the form that editors jump to.
func (s *Settings) BadLines(text string, complaints []string) error {
	end := s.r.ending(ExitUsage, "%s: correct or remove what is wrong, then run:", text)
	for _, one := range complaints {
		end.list = append(end.list, errors.New(one))
	}
	return end
}

// RetriesFailed reports whether what failed for good before is tried again, and StartsOver
// whether nothing of before counts.
func (s *Settings) RetriesFailed() bool { return s.r.flags.retryFailed }

// StartsOver is explained at RetriesFailed.
func (s *Settings) StartsOver() bool { return s.r.flags.fresh }

// Skips reports whether bad lines, and chats that cannot be said in the provider's dialect,
// are left out instead of ending the command.
func (s *Settings) Skips() (bad, untranslatable bool) {
	return s.r.flags.skipsBadLines(), s.r.flags.skipsUntranslatable()
}

// Told lists the flags of the groups that were set, wherever, by name, for another machine
// to read an input as this one does: [Calls.For]. A value may be a part of every prompt; no
// flag of a group has a key in it, but for base-url, if whoever wrote that put one there.
func (s *Settings) Told(groups Flags) map[string]string {
	told := map[string]string{}
	s.own.VisitAll(func(f *pflag.Flag) {
		if f.Changed && groups.has(f.Name) {
			told[f.Name] = f.Value.String()
		}
	})
	return told
}

// Bounds are the flags of Tries, set or not: what they say is what becomes of an item, and so the same wherever it is
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

// Face opens what the flags say is shown, and the log; close ends both, with no report. A command without Faces
// shows no run: it says in lines what --progress would have in a panel or beside a bar.
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

// Every is the period in which what Face opens shows how a run stands.
func (s *Settings) Every() time.Duration { return s.r.every }

// Begin says to what Face has opened what runs, and since when: of how many items, if that is known.
func (s *Settings) Begin(input string, items *int) {
	s.r.input = input
	start := s.r.startOf(nil)
	start.Items = items
	s.r.console.Begin(start, s.r.began)
}

// Watch waits for signals and for the --deadline until closed is called. The first of them
// closes drain: start nothing more. A signal after that ends calls: abandon what is in
// flight. One more has its usual effect. Each is said, in words for people.
func (s *Settings) Watch(ctx context.Context, say func(event.Code, string)) (drain <-chan struct{}, calls context.Context, closed func()) {
	s.r.halt = s.r.watch(ctx, s.r.flags.deadline, say)
	return s.r.halt.drain, s.r.halt.ctx, s.r.halt.close
}

// TakeDeadline gives --deadline to a command that has others keep it: Watch does not. 0 is none.
func (s *Settings) TakeDeadline() time.Duration {
	d := s.r.flags.deadline
	s.r.flags.deadline = 0
	return d
}

// MaxFailures is --max-failures: a number of items, or a share of them; both 0 is no bound.
func (s *Settings) MaxFailures() (items int, share float64) {
	return s.r.flags.maxFailures.items, s.r.flags.maxFailures.share
}

// NameFailed tells the verdict which items have failed: the first of them by their lines in the
// errors file, and how many there are.
func (s *Settings) NameFailed(first []journal.Line, all int) {
	f := &s.r.failed
	for i := range first[:min(len(first), mostNamed)] {
		l := &first[i]
		f.named = append(f.named, s.r.failedAs(l.CustomID, l.Headrace.Calls, faultIn(l)))
	}
	f.unsaid = all - len(f.named)
}

// Verdict is how a run with these sums ends, as headrace run does: the code, the words, and
// the line that goes on from there. Nil is a run of which every item succeeded.
func (s *Settings) Verdict(sums *promptfile.Sums) error { return s.r.verdict(sums) }
