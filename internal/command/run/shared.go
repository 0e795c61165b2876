package run

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/internal/command/schema"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider"
)

// JobPrices names the setting of a job that holds the text of its file of prices. It is no flag, as a flag names a file of
// one machine.
const JobPrices = "prices.json"

// JobLanes names the setting of a job that holds its lanes and pools, as the file of --config has them.
const JobLanes = "lanes.yaml"

// JobSchema names the setting of a job that holds the schema that its answers must fit, as [schema.Pack] makes it.
const JobSchema = "schema.json"

// jobRetries is the flag of Checks that a job may set: the other one names a file of one machine.
const jobRetries = "schema-retries"

// Settings holds the values of run's flags, for another command that has some of them; a
// flag that it does not have has its default. They belong to one goroutine.
//
//	NewSettings ─ Register ─ (cobra parses) ─ Complete ─▶ Flags, Given, Face, Connect, Verdict
type Settings struct {
	*verdict.Facts
	Verdict *verdict.Verdict
	r       *runner
	groups  settings.Groups
	own     *pflag.FlagSet // the flags that the command has
}

// NewSettings returns the settings of a command that has the flags of these groups.
func NewSettings(w *world.World, groups settings.Groups) *Settings {
	f := &settings.Flags{}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(all)
	s := settingsOf(w, f, "")
	s.groups, s.own = groups, all
	return s
}

// settingsOf returns the settings of complete flags.
func settingsOf(w *world.World, f *settings.Flags, input string) *Settings {
	ctx, stop := context.WithCancelCause(context.Background())
	quiet := &world.Halt{Drain: make(chan struct{}), Ctx: ctx, Stop: stop} // nothing stops it until a call of Watch
	r := newRunner(&verdict.Facts{World: w, Flags: f, Input: input, Halt: quiet, Began: w.Clock.Now()})
	return &Settings{r.Facts, r.verdict, r, ^settings.Groups(0), f.All}
}

// Register adds the flags to the command. Its help shows them under the headings of run,
// after the command's own flags.
func (s *Settings) Register(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	s.own = cmd.Flags()
	s.Flags.All.VisitAll(func(f *pflag.Flag) {
		if s.groups.Has(f.Name) {
			s.own.AddFlag(f)
		}
	})
	settings.CompleteValues(cmd)
	settings.GroupFlags(cmd, settings.RunGroups)
}

// Complete sets missing flags from the environment, then from the file of --config, and
// checks them. Call it once, when the command line is parsed. The command ends with its
// error, and has then called nothing. A file may set flags that the command does not have,
// so that one file serves all commands.
func (s *Settings) Complete() error {
	if err := s.Flags.Complete(s.own, s.Env); err != nil {
		return err
	}
	if s.Flags.ServiceTier == settings.TierAuto && s.Flags.Fleet == nil {
		return exit.Refuse("--service-tier auto: %s", autoNeedsLanes)
	}
	return nil
}

// CheckFolders refuses an output or an errors file on this machine whose folder does not exist.
func (s *Settings) CheckFolders() error {
	local := slices.DeleteFunc([]string{s.Flags.Output, s.Flags.ErrorsPath()}, func(path string) bool { return strings.Contains(path, "://") })
	if text := settings.NoFolder(local...); text != "" {
		return exit.Refuse("%s", text)
	}
	return nil
}

// Options returns the options of a run whose lanes have bounds of their own, as [Calls.Bound]
// gives them.
func (s *Settings) Options() []batch.Option {
	return []batch.Option{batch.WithAttemptTimeout(0), batch.WithLongWait(s.Flags.LongWait)}
}

// Lines returns how to read lines and write results, as [Calls.Job] does, for a command that makes no calls.
// It needs no key.
func (s *Settings) Lines() promptfile.Config {
	r := s.r
	if r.Account == nil {
		r = newRunner(&verdict.Facts{World: s.World, Flags: s.Flags, Halt: s.Halt})
		r.Account = &account.Account{Name: r.Flags.Name(), Shared: r.Flags.Vendor.ByAccount || r.Flags.Provider == settings.ProviderSim}
	}
	job := r.jobConfig(promptfile.Input{})
	job.Watch = promptfile.Watch{}
	return job
}

// Given returns the set flags of the groups, by name. With them another machine reads an input as this one
// does: see [Settings.For]. A value may be a part of every prompt. None holds a key, except a base-url into
// which its author put one.
func (s *Settings) Given(groups settings.Groups) map[string]string {
	given := map[string]string{}
	s.own.VisitAll(func(f *pflag.Flag) {
		if f.Changed && groups.Has(f.Name) {
			given[f.Name] = f.Value.String()
		}
	})
	return given
}

// Bounds returns all flags of Tries, set or not. They decide the fate of an item, and so must be the same on
// every machine.
func (s *Settings) Bounds() map[string]string {
	bounds := map[string]string{}
	s.Flags.All.VisitAll(func(f *pflag.Flag) {
		if settings.Tries.Has(f.Name) {
			bounds[f.Name] = f.Value.String()
		}
	})
	return bounds
}

// Face opens the log and the display that the flags ask for; close ends both, with no report. A
// command without Faces shows no run: it writes as lines what --progress would show in a panel
// or next to a bar.
func (s *Settings) Face() (console *progress.Console, log *slog.Logger, closed func(), err error) {
	if mode := &s.Flags.Progress; s.groups&settings.Faces == 0 && *mode != settings.ProgressJSON && *mode != settings.ProgressNone {
		*mode = settings.ProgressPlain
	}
	manner := s.r.show.manner()
	s.r.show.every, s.r.show.console = manner.Every(), progress.Open(manner, s.Clock.Now)
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
	s.Halt = s.r.Watch(ctx, s.Flags.Deadline, say)
	return s.Halt.Drain, s.Halt.Ctx, s.Halt.Close
}

// Calls makes the calls that the flags describe: it holds a client with its key, and the bounds
// and the pace of the calls. Any number of goroutines may use Call.
type Calls struct {
	*verdict.Facts
	r *runner
}

// Connect makes the client, with the key from the place that the flags name. It makes no call. Its error ends
// the command.
func (s *Settings) Connect() (*Calls, error) {
	var err error
	if s.Account, err = account.Connect(s.Halt.Ctx, s.World, s.Flags); err != nil {
		return nil, err
	}
	if lowered := s.Account.LowerConcurrency(); lowered != "" {
		s.Account.Note(event.LoweredConcurrency, lowered)
	}
	return &Calls{s.Facts, s.r}, nil
}

// Call makes the call of an item, as headrace run does, and logs it if the log wants that. The caller must have
// called [Settings.Face]. Its errors are a [*provider.Error] and those of the context.
func (c *Calls) Call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	return c.r.calls.call(ctx, it)
}

// Options returns how to pace, retry and bound the calls, without what an earlier run has
// learned.
func (c *Calls) Options() []batch.Option { return c.r.calls.options() }

// Job returns what headrace run would do with the input. It sets the lane of each model's
// calls, the cost of a request for the lane and in money, and the most calls in flight. It
// also says how to read lines and write answers, and what must not be shown. Watch is left
// to the caller.
func (c *Calls) Job(in promptfile.Input) promptfile.Config {
	job := c.r.jobConfig(in)
	job.Watch = promptfile.Watch{}
	return job
}

// Bound gives a lane the bounds on items and calls that the flags of Tries set.
func (c *Calls) Bound(lane *machine.LaneConfig) {
	f := c.Flags
	lane.MaxAttempts, lane.AttemptTimeout, lane.ItemTimeout = f.MaxAttempts, f.Timeout, f.ItemTimeout
}

// For returns the calls of a job that other settings describe. These say how to read lines, when to give up
// an item, which answers are results, and what it costs. They also name the provider, unless this command's
// own flags do. The pace and the key are those of this command. For refuses values that their flags refuse.
// It refuses any name except the flags of Vendor, Input and Tries, price, schema-retries, [JobPrices],
// [JobLanes] and [JobSchema]. A key, header or certificate that the command names never goes to a provider
// that a job names. For returns an error for such a command, unless it names the provider itself. It makes no
// call.
func (s *Settings) For(job map[string]string) (*Calls, error) {
	theirs := settings.Input | settings.Tries | settings.Checks | settings.Costs
	if len(s.Given(settings.Vendor)) == 0 {
		theirs |= settings.Vendor
	}
	own := s.Given(settings.Keys | settings.Net)
	delete(own, "ca-file") // it gives nothing away
	if theirs.Has("provider") && len(own) > 0 {
		return nil, exit.Refuse("%s: add --provider or --base-url, so that no job sends what is yours elsewhere", settings.Dashed(slices.Sorted(maps.Keys(own))))
	}
	j := NewSettings(s.World, s.groups|settings.Vendor|settings.Input|settings.Tries|settings.Checks|settings.Costs)
	j.Register(&cobra.Command{})
	if err := j.applyJob(job, theirs); err != nil {
		return nil, err
	}
	for flag, value := range s.Given(^(settings.Input | settings.Tries | settings.Checks | settings.Config)) {
		_ = j.own.Set(flag, value) // the flag took it before
	}
	if err := j.Flags.Complete(j.own, envOfOthers(j.Env)); err != nil {
		return nil, err
	}
	var err error
	if j.r.schema, err = schema.Of(j.Flags); err != nil {
		return nil, err
	}
	// What all jobs have in common. The flags in the file of --config are in these settings already.
	j.r.show.console, j.r.log.Logger, j.Halt = s.r.show.console, s.r.log.Logger, s.Halt
	if j.Flags.Fleet != nil { // each lane has its own
		j.r.routes = route.New(j.Flags)
	} else {
		j.Flags.Lanes = s.Flags.Lanes
	}
	j.Flags.Seed, j.Flags.Seeded = s.Flags.Seed, s.Flags.Seeded
	return j.Connect()
}

// applyJob sets the flags of these groups from the settings of a job. It skips flags that are in none of the
// groups, and refuses unknown settings.
func (s *Settings) applyJob(job map[string]string, groups settings.Groups) error {
	for _, name := range slices.Sorted(maps.Keys(job)) {
		switch name {
		case JobPrices:
			s.Flags.BringPrices(job[name])
			continue
		case JobLanes:
			s.Flags.BringLanes(job[name])
			continue
		case JobSchema:
			s.Flags.JobSchema = job[name]
			continue
		}
		// prices and schema name files, which would be some of this machine
		if !(settings.Vendor | settings.Input | settings.Tries).Has(name) && name != "price" && name != jobRetries {
			return exit.Refuse("unknown job setting %q", name)
		}
		if !groups.Has(name) {
			continue
		}
		if err := s.own.Set(name, job[name]); err != nil {
			return exit.Refuse("the settings of a job: %s: %v", name, err)
		}
	}
	return nil
}

// envOfOthers returns a lookup of the environment that hides the variables of flags. A job's own settings
// replace those.
func envOfOthers(env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if strings.HasPrefix(name, settings.EnvironmentPrefix) {
			return "", false
		}
		return env(name)
	}
}

// Close closes the connections that wait for another call.
func (c *Calls) Close() { c.Account.Fleet.CloseIdle() }
