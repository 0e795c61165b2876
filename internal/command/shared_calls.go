package command

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/provider"
)

// Calls makes the calls that the flags describe: it holds a client with its key, and the bounds
// and the pace of the calls. Any number of goroutines may use Call.
type Calls struct{ s *Settings }

// Connect makes the client, with the key from the place that the flags name; it makes no
// call. The command ends with its error.
func (s *Settings) Connect() (*Calls, error) {
	var err error
	if s.r.backend, err = s.r.connect(); err != nil {
		return nil, err
	}
	if lowered := s.r.lowerConcurrency(); lowered != "" {
		s.r.backend.note(event.LoweredConcurrency, lowered)
	}
	return &Calls{s}, nil
}

// Notices returns what the user should know about the called provider, in words for people.
func (c *Calls) Notices() (list []string) {
	for _, n := range c.s.r.backend.notice {
		list = append(list, n.text)
	}
	return list
}

// Call makes the call of an item, as headrace run does, and logs it if the log wants that. The caller must have
// called [Settings.Face]. Its errors are a [*provider.Error] and those of the context.
func (c *Calls) Call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	return c.s.r.call(ctx, it)
}

// Options returns how to pace, retry and bound the calls, without what an earlier run has
// learned.
func (c *Calls) Options() []batch.Option { return c.s.r.options() }

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
	f := c.s.r.flags
	lane.MaxAttempts, lane.AttemptTimeout, lane.ItemTimeout = f.maxAttempts, f.timeout, f.itemTimeout
}

// For returns the calls of a job that other settings describe. These say how to read lines, and
// when to give up an item. They also say whom to call, unless this command's own flags do. The
// pace and the key are those of this command. For refuses a name that is no flag of Whom, Input
// or Tries, and a value that its flag refuses. A key, header or certificate that the command
// names never goes to a provider that a job names. For returns an error for such a command,
// unless it says itself whom to call. It makes no call.
func (s *Settings) For(told map[string]string) (*Calls, error) {
	theirs := Input | Tries
	if len(s.Told(Whom)) == 0 {
		theirs |= Whom
	}
	own := s.Told(Keys | Net)
	delete(own, "ca-file") // it gives nothing away
	if theirs.has("provider") && len(own) > 0 {
		return nil, refuse("%s: add --provider or --base-url, so that no job sends what is yours elsewhere", dashed(slices.Sorted(maps.Keys(own))))
	}
	j := NewSettings(s.r.World, s.flags|Whom|Input|Tries)
	j.Register(&cobra.Command{})
	if err := j.take(told, theirs); err != nil {
		return nil, err
	}
	for flag, value := range s.Told(^(Input | Tries | Config)) {
		_ = j.own.Set(flag, value) // the flag took it before
	}
	if err := j.r.flags.complete(j.own, j.r.envOfOthers); err != nil {
		return nil, err
	}
	j.r.share(s.r)
	return j.Connect()
}

// take sets the flags of these groups from other settings, and ignores flags of Whom that are
// not wanted.
func (s *Settings) take(told map[string]string, groups Flags) error {
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if !(Whom | Input | Tries).has(name) {
			return refuse("unknown job setting %q", name)
		}
		if !groups.has(name) {
			continue
		}
		if err := s.own.Set(name, told[name]); err != nil {
			return refuse("the settings of a job: %s: %v", name, err)
		}
	}
	return nil
}

// envOfOthers looks up the environment without the variables of flags. The job says how to
// read lines, and the other flags have their values already.
func (w *World) envOfOthers(name string) (string, bool) {
	if strings.HasPrefix(name, environmentPrefix) {
		return "", false
	}
	return w.env(name)
}

// share takes over from another runner what all jobs have in common. The flags in the file
// of --config are in the other's settings already.
func (r *runner) share(of *runner) {
	r.console, r.log, r.halt = of.console, of.log, of.halt
	r.flags.lanes = of.flags.lanes
	r.flags.seed, r.flags.seeded = of.flags.seed, of.flags.seeded
}

// Settings returns the settings of the calls.
func (c *Calls) Settings() *Settings { return c.s }

// Close closes the connections that wait for another call.
func (c *Calls) Close() { c.s.r.backend.fleet.CloseIdle() }
