package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/disk"
)

// readyWait bounds the time until a single hub serves. One of three reports at this interval that it waits.
const readyWait = 2 * time.Minute

const hubLong = `Serve the bus of a cluster: one of these, or three on machines of their own.

A lost hub loses no data: its queue is made again from the store, and workers continue when a hub is
back. Other machines join by a line with a token in it, over TLS. Tokens and certificates are made at the
first start, which prints three lines: an admin's permits all; a worker's permits all but setting limits; a watcher's
permits to see how jobs, workers and limits stand. Later they are in the files join-admin, join-work and
join-watch of --dir, for you alone. Three hubs share what headrace hub init makes.`

// hubFlags are the flags of hub.
type hubFlags struct {
	listen, advertise, home, dir, route, name, tlsDir, ready string
	peers                                                    []string
	meters                                                   meters
}

// newHubCommand makes headrace hub, with its command init.
func newHubCommand(w *world.World) *cobra.Command {
	f, s := &hubFlags{}, run.NewSettings(w, 0)
	cmd := &cobra.Command{
		Use:   "hub --store HOME [flags]",
		Short: "Serve the bus of a cluster",
		Long:  hubLong,
		Example: `  headrace hub --store /mnt/shared/headrace
  headrace hub --store s3://bucket/headrace --listen 0.0.0.0:4222
  headrace hub --store s3://bucket/headrace --listen 0.0.0.0:4222 --tls-dir shared --route 0.0.0.0:6222 --peers hub-0:6222,hub-1:6222,hub-2:6222`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), cmd, w, s) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.home, "store", "", "the cluster's home: a folder that all machines share, or s3://bucket/prefix (it is in the line to join by)")
	flags.StringVar(&f.listen, "listen", bus.DefaultListen, "address to listen on; port 0 picks one, and keeps it")
	flags.StringVar(&f.advertise, "advertise", "", "host, or host:port, by which others reach this one (default: that of --listen, or this machine's name)")
	flags.StringVar(&f.dir, "dir", "", "folder for tokens, certificates and the queue, of this machine's own disk (default: headrace-hub in XDG_STATE_HOME, or in ~/.local/state)")
	flags.StringVar(&f.route, "route", "", "of three: address on which this one hears the others")
	flags.StringSliceVar(&f.peers, "peers", nil, "of three: where all three hear each other, as a:6222,b:6222,c:6222")
	flags.StringVar(&f.name, "name", "", "of three: a name that stays the same over restarts (default: of this machine)")
	flags.StringVar(&f.tlsDir, "tls-dir", "", "of three: folder with the token, ca.pem and ca.key that all three have, as headrace hub init makes it (default: tls in --dir)")
	flags.StringVar(&f.ready, "ready-file", "", "file that gets the line to join by once the hub serves")
	f.meters.register(flags)
	s.Register(cmd)
	cmd.AddCommand(newHubInitCommand(w))
	return cmd
}

// newHubInitCommand makes headrace hub init, which needs no running hub.
func newHubInitCommand(w *world.World) *cobra.Command {
	return &cobra.Command{
		Use: "init FOLDER", Short: "Make what three hubs share: a token and certificates",
		Long:    "Make the token, ca.pem and ca.key that three hubs share. Copy the folder to all three machines, and start each hub with --tls-dir FOLDER.",
		Example: "  headrace hub init shared",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bus.MakeShared(args[0], w.Clock.Now()); err != nil {
				return exit.EndOf(exit.Usage, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "copy %s to all three machines, and start each hub with --tls-dir\n", args[0])
			return nil
		},
	}
}

// serve runs the hub until a signal ends it. It prints the join lines, and writes them into files,
// only once the hub serves.
func (f *hubFlags) serve(ctx context.Context, cmd *cobra.Command, w *world.World, s *run.Settings) error {
	if err := s.Complete(); err != nil {
		return err
	}
	if err := f.meters.check(); err != nil {
		return err
	}
	say := speakerOf(cmd)
	drain, ctx, closed := s.Watch(ctx, say.event)
	defer closed()
	hub, err := f.start(w, say)
	if err != nil {
		return err
	}
	defer hub.Shutdown()
	unmetered, err := f.meters.open(say, hubSource{hub})
	if err != nil {
		return err
	}
	defer unmetered()
	if served, err := f.awaitReady(ctx, drain, hub, say); !served {
		return err
	}
	home, err := node.HomeOf(f.home)
	if err != nil {
		return exit.End(exit.Usage, "--store: %v", err)
	}
	if err := f.sayLines(cmd.ErrOrStderr(), hub, home); err != nil {
		return err
	}
	select {
	case <-drain:
	case <-ctx.Done():
	}
	return nil
}

// awaitReady waits until the hub serves. It returns false if the user ended it before, or the hub does not serve. One of
// three waits for the others as long as it takes.
func (f *hubFlags) awaitReady(ctx context.Context, drain <-chan struct{}, hub *bus.Hub, say *speaker) (served bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ready := make(chan error, 1)
	go func() { ready <- hub.Ready(ctx) }() // it ends with ctx, and is waited for
	for {
		select {
		case err := <-ready:
			return err == nil, err
		case <-drain:
			stop()
			if err := <-ready; !errors.Is(err, context.Canceled) { // it was ready, or failed, just then
				return err == nil, err
			}
			return false, nil
		case <-time.After(readyWait):
			if f.route == "" {
				stop()
				return false, exit.End(exit.Stopped, "the hub does not serve: %v", <-ready)
			}
			say.line("this hub waits for the others: two of the three must reach each other, and at their first start all three")
		}
	}
}

// stateFolder returns the folder for data that a hub must not lose, if no --dir is given. A hub that began in the user's
// cache folder, as older versions did, stays there.
func stateFolder(w *world.World) (string, error) {
	state, _ := w.Env("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(state, "headrace-hub")
	if caches, err := os.UserCacheDir(); err == nil && !isHub(dir) && isHub(filepath.Join(caches, "headrace-hub")) {
		dir = filepath.Join(caches, "headrace-hub")
	}
	return dir, nil
}

func isHub(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "token"))
	return err == nil
}

// start starts the hub, and removes the ready file of an earlier start. Without --dir it sets f.dir to the folder that it uses, which sayLines
// needs.
func (f *hubFlags) start(w *world.World, say *speaker) (hub *bus.Hub, err error) {
	if f.home == "" {
		say.line("no --store: each machine that joins must set it, as the join line does not have it")
	}
	if f.dir == "" {
		if f.dir, err = stateFolder(w); err != nil {
			return nil, exit.End(exit.Usage, "--dir: name a folder: %v", err)
		}
	}
	hub, err = bus.StartHub(bus.HubConfig{
		Dir: f.dir, Listen: f.listen, Advertise: f.advertise, TLSDir: f.tlsDir, Route: f.route, Peers: f.peers, Name: f.name, Say: say.error,
	})
	if err != nil {
		return nil, exit.EndOf(exit.Usage, err)
	}
	if f.ready != "" { // the line of an earlier start; a reader would take it for this one's
		if err := os.Remove(f.ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
			hub.Shutdown()
			return nil, exit.End(exit.Usage, "--ready-file: %v", err)
		}
	}
	return hub, nil
}

// sayLines writes the join lines into files, for their owner alone. It prints them only if the token is new.
func (f *hubFlags) sayLines(out io.Writer, hub *bus.Hub, home string) error {
	lines := map[bus.Role]string{}
	for _, r := range bus.Roles {
		lines[r] = node.JoinLine(hub.RoleURL(r), home)
		if err := writeLine(filepath.Join(f.dir, "join-"+string(r)), lines[r]); err != nil {
			return exit.End(exit.Usage, "--dir: %v", err)
		}
	}
	if f.ready != "" {
		if err := writeLine(f.ready, lines[bus.AdminRole]); err != nil {
			return exit.End(exit.Usage, "--ready-file: %v", err)
		}
	}
	if !hub.MadeToken() {
		fmt.Fprintf(out, "the hub serves; the lines to join by are in %s: join-admin, join-work and join-watch\n", f.dir)
		return nil
	}
	fmt.Fprintf(out, "the hub serves. The lines to join by are secrets, printed this once, and kept in %s\n"+
		"another machine joins with:\n  headrace worker --join '%s'\njobs and limits are given with (also as HEADRACE_CLUSTER):\n  headrace submit --cluster '%s'\na line that only permits watching:\n  headrace jobs watch --cluster '%s'\n",
		f.dir, lines[bus.WorkRole], lines[bus.AdminRole], lines[bus.WatchRole])
	return nil
}

// writeLine writes a line, which is a secret, to a file, whole or not at all.
func writeLine(path, line string) error {
	return disk.Real().Write(path, []byte(line+"\n"), 0o600)
}
