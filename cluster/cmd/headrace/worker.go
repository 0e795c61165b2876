package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
)

const workerLong = `Work for a cluster: claim parts of its jobs, call the provider, save the answers.

headrace hub and headrace run --cluster print the line to join by. The job says which provider to
call and how to read lines. The key comes from this machine's environment and stays here. Start any
number of workers, on any number of machines, at any time. If one is killed, others do its work, and
nothing that it saved is bought again.

SIGTERM, or Ctrl-C, finishes the calls in flight; a second one abandons them.`

// joinFlags are the flags of every command that joins a cluster.
type joinFlags struct {
	line, home    string
	ackWait, term time.Duration
	patient       bool // it waits for an absent store
	works         bool // its times are the cluster's, if it is the first
	founds        bool // it is the founder of a cluster that has none
}

func (f *joinFlags) register(fs *pflag.FlagSet, name string) {
	fs.StringVar(&f.line, name, "", "the line to join by, as headrace hub prints it (or HEADRACE_CLUSTER)")
	fs.StringVar(&f.home, "store", "", "where the cluster's home is found from here, if not as the line says: a folder, or s3://bucket/prefix")
}

// registerTimes registers the times on which all processes of a cluster must agree.
func (f *joinFlags) registerTimes(fs *pflag.FlagSet) {
	fs.DurationVar(&f.ackWait, "ack-wait", 0, "after how long without a sign of life work is given to another; its first worker settles it for all of a cluster (default 30s)")
	fs.DurationVar(&f.term, "lease", 0, "how long a keeper is one without renewing it; its first worker settles it for all of a cluster (default 3s; 6s is right for three hubs)")
}

// leastTime is the shortest --ack-wait and --lease. Each of them holds three to ten signs of life. Below a second a slow
// message costs a worker its work, for all of a cluster and for good.
const leastTime = time.Second

// checkTimes rejects times that no cluster can keep. 0 means that the flag was not given.
func (f *joinFlags) checkTimes() error {
	for _, one := range []struct {
		flag  string
		value time.Duration
	}{{"--ack-wait", f.ackWait}, {"--lease", f.term}} {
		if one.value != 0 && one.value < leastTime {
			return exit.End(exit.Usage, "%s %v: it must be %v or more", one.flag, one.value, leastTime)
		}
	}
	return nil
}

// reachWait bounds the time for a person to get into the bus of a cluster.
const reachWait = 10 * time.Second

// clusterVariable names the environment variable for the join line, used where no flag gives one.
const clusterVariable = "HEADRACE_CLUSTER"

// config returns the settings of the node, from the flags or the environment.
func (f *joinFlags) config(w *world.World, say notifier) (cfg node.Config, err error) {
	if f.line == "" {
		f.line, _ = w.Env(clusterVariable)
	}
	if f.line == "" {
		return cfg, exit.End(exit.Usage, "no cluster is named: give the line that headrace hub prints, or set %s", clusterVariable)
	}
	return node.Config{
		Line: f.line, Home: f.home, Patient: f.patient, Times: node.Times{AckWait: f.ackWait, Term: f.term}, Settles: f.works, Founds: f.founds, Seed: w.Chance, Clock: w.Clock, Say: say.line,
	}, nil
}

// join joins the cluster. A command for a person gives up after reachWait; a worker waits for a
// bus that is away.
func (f *joinFlags) join(ctx context.Context, w *world.World, say notifier) (*node.Node, error) {
	cfg, err := f.config(w, say)
	if err != nil {
		return nil, err
	}
	if !f.works { // who works waits for a bus that is away, a person does not
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, reachWait)
		defer stop()
	}
	n, err := node.Join(ctx, cfg)
	if err != nil {
		return nil, exit.EndOf(exit.Usage, err)
	}
	return n, nil
}

// workerFlags are the flags of worker.
type workerFlags struct {
	joinFlags
	meters
	keeper    string
	saveEvery time.Duration
}

// newWorkerCommand makes headrace worker. A worker founds the cluster, and settles its times, if
// nobody has before. It waits for an absent store.
func newWorkerCommand(w *world.World) *cobra.Command {
	f := &workerFlags{joinFlags: joinFlags{patient: true}}
	s := run.NewSettings(w, settings.Vendor|settings.Keys|settings.Net|settings.Pace|settings.Until|settings.Says|settings.Config)
	cmd := &cobra.Command{
		Use:   "worker --join LINE [flags]",
		Short: "Work for a cluster until stopped",
		Long:  workerLong,
		Example: `  headrace worker --join 'nats://TOKEN@10.0.0.5:4222?ca=sha256:…&home=s3%3A%2F%2Fbucket%2Fheadrace'
  HEADRACE_CLUSTER='nats://…' headrace worker -c 256`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.work(cmd.Context(), w, s) },
	}
	f.joinFlags.register(cmd.Flags(), "join")
	f.registerTimes(cmd.Flags())
	f.works, f.founds = true, true
	f.meters.register(cmd.Flags())
	cmd.Flags().StringVar(&f.keeper, "keeper", string(keeping.MayKeep), "whether the limits may be kept here: may, never (this machine may vanish) or prefer")
	cmd.Flags().DurationVar(&f.saveEvery, "save-every", store.DefaultPieceEvery, "with a store in a bucket: after how long an answer is saved at the latest; a worker that is killed loses no more")
	settings.CompleteWords(cmd, "keeper", string(keeping.MayKeep), string(keeping.NeverKeeps), string(keeping.PrefersKeep))
	s.Register(cmd)
	return cmd
}

// work works for the cluster until a signal, or the --deadline, and then finishes the calls in
// flight. It checks its flags before it joins.
func (f *workerFlags) work(ctx context.Context, w *world.World, s *run.Settings) error {
	if err := s.Complete(); err != nil {
		return err
	}
	candidacy, err := keeping.ParseCandidacy(f.keeper)
	if err != nil {
		return exit.End(exit.Usage, "--keeper: %v", err)
	}
	if err := f.checkTimes(); err != nil {
		return err
	}
	if err := f.meters.check(); err != nil {
		return err
	}
	if f.saveEvery <= 0 {
		return exit.End(exit.Usage, "--save-every %v: more than nothing", f.saveEvery)
	}
	say, err := openDisplay(s)
	if err != nil {
		return err
	}
	defer say.close()
	source := &workerSource{clock: w.Clock}
	unmetered, err := f.meters.open(say, source)
	if err != nil {
		return err
	}
	defer unmetered()
	drain, calls, closed := s.Watch(ctx, say.event)
	defer closed()
	n, err := f.join(calls, w, say)
	if err != nil {
		return err
	}
	err = n.Work(calls, node.Worker{
		Open: opener(s), Keeper: candidacy, Concurrency: s.Flags.Concurrency, Options: s.Options(), Drain: drain, Watch: source.watch(),
		SaveEvery: f.saveEvery,
	})
	return workerResult(calls, drain, err, n.Close())
}
