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

// Calls are how calls are made to whom the flags say: a client with its key, and what bounds
// and paces them. Do may be called by any number of goroutines.
type Calls struct{ s *Settings }

// Connect makes the client, with the key in the place that the flags say; no call is made.
// Its error is one to end with.
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

// Notices are what the user should know of whom is called, in words for people.
func (c *Calls) Notices() (list []string) {
	for _, n := range c.s.r.backend.notice {
		list = append(list, n.text)
	}
	return list
}

// Call makes the call of an item, as headrace run does, with a line in the log if that wants one: [Settings.Face] is
// to be called before. Its errors are a [*provider.Error] and those of the context.
func (c *Calls) Call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	return c.s.r.call(ctx, it)
}

// Options are how the calls are paced, tried again and bounded, without what an earlier run
// has learned.
func (c *Calls) Options() []batch.Option { return c.s.r.options() }

// Job is what headrace run would run of the input: which lane a model's calls go to, what a
// request costs the lane and in money, how lines are read and answers written, the most
// calls in flight, what must not be shown. Watch is left to the caller.
func (c *Calls) Job(in promptfile.Input) promptfile.Config {
	job := c.s.r.job(in)
	job.Watch = promptfile.Watch{}
	return job
}

// Bound gives a lane the bounds on items and calls that the flags of Tries say.
func (c *Calls) Bound(lane *machine.LaneConfig) {
	f := c.s.r.flags
	lane.MaxAttempts, lane.AttemptTimeout, lane.ItemTimeout = f.maxAttempts, f.timeout, f.itemTimeout
}

// For are the calls of a job of which other settings have told: whom to call, unless this
// command's own flags say anything of that, how lines are read, and when an item is given up. How
// fast and with which key is as here. A name that is no flag of Whom, Input or Tries is refused, and so is what
// its flag refuses. A key, header or certificate that the command names goes to nobody whom a job names: where it does
// not say itself whom to call, that is refused. No call is made.
func (s *Settings) For(told map[string]string) (*Calls, error) {
	theirs := Input | Tries
	if len(s.Told(Whom)) == 0 {
		theirs |= Whom
	}
	own := s.Told(Keys | Net)
	delete(own, "ca-file") // which gives nothing away
	if theirs.has("provider") && len(own) > 0 {
		return nil, refuse("%s: add --provider or --base-url, so that no job sends what is yours elsewhere", dashed(slices.Sorted(maps.Keys(own))))
	}
	j := NewSettings(s.r.World, s.flags|Whom|Input|Tries)
	j.Register(&cobra.Command{})
	if err := j.take(told, theirs); err != nil {
		return nil, err
	}
	for flag, value := range s.Told(^(Input | Tries | Config)) {
		_ = j.own.Set(flag, value) // it was taken before
	}
	if err := j.r.flags.complete(j.own, j.r.envOfOthers); err != nil {
		return nil, err
	}
	j.r.share(s.r)
	return j.Connect()
}

// take sets the flags of these groups that others have told, and leaves those of Whom that are
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

// envOfOthers is the environment without the variables of flags: how lines are read is for
// the job to say, and what else they said is in the flags already.
func (w *World) envOfOthers(name string) (string, bool) {
	if strings.HasPrefix(name, environmentPrefix) {
		return "", false
	}
	return w.env(name)
}

// share takes over from another runner what is one for all jobs. What the file of --config
// says of flags is in the other's settings already.
func (r *runner) share(of *runner) {
	r.console, r.log, r.halt = of.console, of.log, of.halt
	r.flags.lanes = of.flags.lanes
	r.flags.seed, r.flags.seeded = of.flags.seed, of.flags.seeded
}

// Settings are those that the calls are made by.
func (c *Calls) Settings() *Settings { return c.s }

// Close ends the connections that wait for another call.
func (c *Calls) Close() { c.s.r.backend.fleet.CloseIdle() }
