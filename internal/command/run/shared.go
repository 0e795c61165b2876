package run

import (
	"context"
	"errors"
	"log/slog"
	"maps"
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
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider"
)

// Settings holds the values of run's flags, for another command that has some of them; a
// flag that it does not have has its default. They belong to one goroutine.
//
//	NewSettings ─ Register ─ (cobra parses) ─ Complete ─▶ Reader, Told, Face, Connect
type Settings struct {
	r     *runner
	flags settings.Groups
	own   *pflag.FlagSet // the flags that the command has
}

// NewSettings returns the settings of a command with these flags.
func NewSettings(w *world.World, flags settings.Groups) *Settings {
	f := &settings.Flags{}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(all)
	s := settingsOf(w, f, "")
	s.flags, s.own = flags, all
	return s
}

// settingsOf returns the settings of complete flags.
func settingsOf(w *world.World, f *settings.Flags, input string) *Settings {
	ctx, stop := context.WithCancelCause(context.Background())
	quiet := &world.Halt{Drain: make(chan struct{}), Ctx: ctx, Stop: stop} // nothing stops it until a call of Watch
	r := newRunner(&verdict.Facts{World: w, Flags: f, Input: input, Halt: quiet, Began: w.Clock.Now()})
	return &Settings{r: r, flags: ^settings.Groups(0), own: f.All}
}

// Register adds the flags to the command. Its help shows them under the headings of run,
// after the command's own flags.
func (s *Settings) Register(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	s.own = cmd.Flags()
	s.r.Flags.All.VisitAll(func(f *pflag.Flag) {
		if s.flags.Has(f.Name) {
			s.own.AddFlag(f)
		}
	})
	if s.flags&settings.Vendor != 0 {
		settings.CompleteProvider(cmd)
	}
	settings.GroupFlags(cmd, settings.RunGroups)
}

// Complete sets missing flags from the environment, then from the file of --config, and
// checks them. Call it once, when the command line is parsed. The command ends with its
// error, and has then called nothing. A file may set flags that the command does not have,
// so that one file serves all commands.
func (s *Settings) Complete() error {
	return s.r.Flags.Complete(s.own, s.r.Env)
}

// Cluster returns the value of --cluster: an address, ClusterTrial, or "" where it is not
// given. An address may contain a token.
func (s *Settings) Cluster() string { return s.r.Flags.Cluster }

// Output returns the name of the output; "-" is standard output.
func (s *Settings) Output() string { return s.r.Flags.Output }

// Errors returns the name of the errors file: that of --errors, or one derived from the
// output's.
func (s *Settings) Errors() string { return s.r.Flags.ErrorsPath() }

// CheckFolders refuses an output or an errors file on this machine whose folder does not exist.
func (s *Settings) CheckFolders() error {
	local := slices.DeleteFunc([]string{s.Output(), s.Errors()}, func(path string) bool { return strings.Contains(path, "://") })
	if text := settings.NoFolder(local...); text != "" {
		return exit.Refuse("%s", text)
	}
	return nil
}

// Reader says how to read the lines of an input of that name: the name gives the format
// where no flag does.
func (s *Settings) Reader(name string) prompts.Config { return s.r.Flags.ReaderConfig(name) }

// Concurrency returns the most calls that may be in flight.
func (s *Settings) Concurrency() int { return s.r.Flags.Concurrency }

// Options returns the options of a run whose lanes have bounds of their own, as [Calls.Bound]
// gives them.
func (s *Settings) Options() []batch.Option {
	return []batch.Option{batch.WithAttemptTimeout(0), batch.WithLongWait(s.r.Flags.LongWait)}
}

// Lines says how to read an input's lines and write results, as [Calls.Job] does, for a
// command that makes no calls. It needs no key.
func (s *Settings) Lines() promptfile.Config {
	r := s.r
	if r.Account == nil {
		r = newRunner(&verdict.Facts{World: s.r.World, Flags: s.r.Flags, Halt: s.r.Halt})
		r.Account = &account.Account{Name: r.Flags.Name(), Shared: r.Flags.Vendor.ByAccount || r.Flags.Provider == settings.ProviderSim}
	}
	job := r.job(promptfile.Input{})
	job.Watch = promptfile.Watch{}
	return job
}

// Clock returns the clock of the command. Seed returns that of --seed, or another each time.
func (s *Settings) Clock() clockwork.Clock { return s.r.Clock }

// Seed is explained at Clock.
func (s *Settings) Seed() uint64 {
	if s.r.Flags.Seeded {
		return s.r.Flags.Seed
	}
	return s.r.Chance
}

// GoOn ends a command that the same command line can continue: that line is the last one
// shown.
func (s *Settings) GoOn(code int, format string, args ...any) error {
	return s.r.verdict.FailAgain(code, format, args...)
}

// BadLines ends a run whose input has faults. The complaints about its lines have the form that editors jump to.
func (s *Settings) BadLines(text string, complaints []string) error {
	end := s.r.verdict.Ending(exit.Usage, "%s: correct or remove what is wrong, then run:", text)
	for _, one := range complaints {
		end.List = append(end.List, errors.New(one))
	}
	return end
}

// RetriesFailed reports whether items that failed for good before are tried again, and
// StartsOver whether earlier results do not count.
func (s *Settings) RetriesFailed() bool { return s.r.Flags.RetryFailed }

// StartsOver is explained at RetriesFailed.
func (s *Settings) StartsOver() bool { return s.r.Flags.Fresh }

// Skips reports whether bad lines, and chats that the provider's dialect cannot express, are
// left out instead of ending the command.
func (s *Settings) Skips() (bad, untranslatable bool) {
	return s.r.Flags.SkipsBadLines(), s.r.Flags.SkipsUntranslatable()
}

// Given lists the flags of the groups that were set anywhere, by name. With them another
// machine reads an input as this one does: [Calls.For]. A value may be a part of every
// prompt. A flag of a group holds no key, except a base-url into which its author put one.
func (s *Settings) Given(groups settings.Groups) map[string]string {
	told := map[string]string{}
	s.own.VisitAll(func(f *pflag.Flag) {
		if f.Changed && groups.Has(f.Name) {
			told[f.Name] = f.Value.String()
		}
	})
	return told
}

// Bounds lists the flags of Tries, set or not. They decide the fate of an item, and so are the same wherever it is
// called.
func (s *Settings) Bounds() map[string]string {
	all := map[string]string{}
	s.r.Flags.All.VisitAll(func(f *pflag.Flag) {
		if settings.Tries.Has(f.Name) {
			all[f.Name] = f.Value.String()
		}
	})
	return all
}

// Face opens the log and the display that the flags ask for; close ends both, with no report. A
// command without Faces shows no run: it writes as lines what --progress would show in a panel
// or next to a bar.
func (s *Settings) Face() (console *progress.Console, log *slog.Logger, closed func(), err error) {
	if how := &s.r.Flags.Progress; s.flags&settings.Faces == 0 && *how != settings.ProgressJSON && *how != settings.ProgressNone {
		*how = settings.ProgressPlain
	}
	manner := s.r.show.manner()
	s.r.show.every, s.r.show.console = manner.Every(), progress.Open(manner, s.r.Clock.Now)
	closeLog, err := s.r.log.open(s.r.show.console)
	if err != nil {
		s.r.show.console.Close(nil)
		return nil, nil, nil, err
	}
	return s.r.show.console, s.r.log.Logger, func() { closeLog(); s.r.show.console.Close(nil) }, nil
}

// Every returns the period in which the display that Face opens shows how a run stands.
func (s *Settings) Every() time.Duration { return s.r.show.every }

// Begin tells the display that Face has opened about the run: its input, its start, and its number
// of items, if that is known.
func (s *Settings) Begin(input string, items *int) {
	s.r.Input = input
	start := s.r.show.startOf(nil)
	start.Items = items
	s.r.show.console.Begin(start, s.r.Began)
}

// Watch waits for signals and for the --deadline until closed is called. The first of them
// closes drain: start nothing more. A signal after that cancels calls: abandon what is in
// flight. One more has its usual effect. Watch says each in words for people.
func (s *Settings) Watch(ctx context.Context, say func(event.Code, string)) (drain <-chan struct{}, calls context.Context, closed func()) {
	s.r.Halt = s.r.Watch(ctx, s.r.Flags.Deadline, say)
	return s.r.Halt.Drain, s.r.Halt.Ctx, s.r.Halt.Close
}

// TakeDeadline returns --deadline to a command that has others keep it; Watch then ignores it. 0
// is none.
func (s *Settings) TakeDeadline() time.Duration {
	d := s.r.Flags.Deadline
	s.r.Flags.Deadline = 0
	return d
}

// MaxFailures returns --max-failures: a number of items, or a share of them. Both are 0
// without a bound.
func (s *Settings) MaxFailures() (items int, share float64) {
	return s.r.Flags.MaxFailures.Items, s.r.Flags.MaxFailures.Share
}

// NameFailed tells the verdict which items have failed: the first of them by their lines in the
// errors file, and the number of all.
func (s *Settings) NameFailed(first []journal.Line, all int) {
	f := &s.r.verdict.Failed
	for i := range first[:min(len(first), verdict.MostNamed)] {
		l := &first[i]
		f.Named = append(f.Named, s.r.verdict.FailedAs(l.CustomID, l.Headrace.Calls, verdict.FaultIn(l)))
	}
	f.Unsaid = all - len(f.Named)
}

// Verdict returns how a run with these sums ends, as headrace run does: the code, the words,
// and the command that continues it. Nil means that every item succeeded.
func (s *Settings) Verdict(sums *promptfile.Sums) error { return s.r.verdict.Of(sums) }

// Calls makes the calls that the flags describe: it holds a client with its key, and the bounds
// and the pace of the calls. Any number of goroutines may use Call.
type Calls struct {
	*verdict.Facts
	s *Settings
}

// Connect makes the client, with the key from the place that the flags name; it makes no
// call. The command ends with its error.
func (s *Settings) Connect() (*Calls, error) {
	var err error
	if s.r.Account, err = account.Connect(s.r.Halt.Ctx, s.r.World, s.r.Flags); err != nil {
		return nil, err
	}
	if lowered := s.r.Account.LowerConcurrency(); lowered != "" {
		s.r.Account.Note(event.LoweredConcurrency, lowered)
	}
	return &Calls{s.r.Facts, s}, nil
}

// Notices returns what the user should know about the called provider, in words for people.
func (c *Calls) Notices() (list []string) {
	for _, n := range c.Account.Notice {
		list = append(list, n.Text)
	}
	return list
}

// Call makes the call of an item, as headrace run does, and logs it if the log wants that. The caller must have
// called [Settings.Face]. Its errors are a [*provider.Error] and those of the context.
func (c *Calls) Call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	return c.s.r.calls.call(ctx, it)
}

// Options returns how to pace, retry and bound the calls, without what an earlier run has
// learned.
func (c *Calls) Options() []batch.Option { return c.s.r.calls.options() }

// Job returns what headrace run would do with the input. It sets the lane of each model's
// calls, the cost of a request for the lane and in money, and the most calls in flight. It
// also says how to read lines and write answers, and what must not be shown. Watch is left
// to the caller.
func (c *Calls) Job(in promptfile.Input) promptfile.Config {
	job := c.s.r.job(in)
	job.Watch = promptfile.Watch{}
	return job
}

// Bound gives a lane the bounds on items and calls that the flags of Tries set.
func (c *Calls) Bound(lane *machine.LaneConfig) {
	f := c.Flags
	lane.MaxAttempts, lane.AttemptTimeout, lane.ItemTimeout = f.MaxAttempts, f.Timeout, f.ItemTimeout
}

// For returns the calls of a job that other settings describe. These say how to read lines, and
// when to give up an item. They also say whom to call, unless this command's own flags do. The
// pace and the key are those of this command. For refuses a name that is no flag of Whom, Input
// or Tries, and a value that its flag refuses. A key, header or certificate that the command
// names never goes to a provider that a job names. For returns an error for such a command,
// unless it says itself whom to call. It makes no call.
func (s *Settings) For(told map[string]string) (*Calls, error) {
	theirs := settings.Input | settings.Tries
	if len(s.Given(settings.Vendor)) == 0 {
		theirs |= settings.Vendor
	}
	own := s.Given(settings.Keys | settings.Net)
	delete(own, "ca-file") // it gives nothing away
	if theirs.Has("provider") && len(own) > 0 {
		return nil, exit.Refuse("%s: add --provider or --base-url, so that no job sends what is yours elsewhere", settings.Dashed(slices.Sorted(maps.Keys(own))))
	}
	j := NewSettings(s.r.World, s.flags|settings.Vendor|settings.Input|settings.Tries)
	j.Register(&cobra.Command{})
	if err := j.take(told, theirs); err != nil {
		return nil, err
	}
	for flag, value := range s.Given(^(settings.Input | settings.Tries | settings.Config)) {
		_ = j.own.Set(flag, value) // the flag took it before
	}
	if err := j.r.Flags.Complete(j.own, envOfOthers(j.r.Env)); err != nil {
		return nil, err
	}
	j.r.share(s.r)
	return j.Connect()
}

// take sets the flags of these groups from other settings, and ignores flags of Whom that are
// not wanted.
func (s *Settings) take(told map[string]string, groups settings.Groups) error {
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if !(settings.Vendor | settings.Input | settings.Tries).Has(name) {
			return exit.Refuse("unknown job setting %q", name)
		}
		if !groups.Has(name) {
			continue
		}
		if err := s.own.Set(name, told[name]); err != nil {
			return exit.Refuse("the settings of a job: %s: %v", name, err)
		}
	}
	return nil
}

// envOfOthers looks up the environment without the variables of flags. The job says how to
// read lines, and the other flags have their values already.
func envOfOthers(env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if strings.HasPrefix(name, settings.EnvironmentPrefix) {
			return "", false
		}
		return env(name)
	}
}

// share takes over from another runner what all jobs have in common. The flags in the file
// of --config are in the other's settings already.
func (r *runner) share(of *runner) {
	r.show.console, r.log.Logger, r.Halt = of.show.console, of.log.Logger, of.Halt
	r.Flags.Lanes = of.Flags.Lanes
	r.Flags.Seed, r.Flags.Seeded = of.Flags.Seed, of.Flags.Seeded
}

// Settings returns the settings of the calls.
func (c *Calls) Settings() *Settings { return c.s }

// Close closes the connections that wait for another call.
func (c *Calls) Close() { c.Account.Fleet.CloseIdle() }
