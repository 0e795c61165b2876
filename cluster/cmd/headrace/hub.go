package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command"
)

// readyWait is how long a hub may take until it serves: three of them wait for each other.
const readyWait = 2 * time.Minute

const hubLong = `Serve the bus of a cluster: one of these, or three on machines of their own.

A lost hub loses no data: its queue is made again from the store, and workers continue when a hub is
back. Other machines join with the token in the line to join by, over TLS. Token and certificates are
made at the first start.`

// hubFlags are those of hub.
type hubFlags struct {
	listen, advertise, home, dir, route, name, tlsDir, ready string
	peers                                                    []string
}

func newHubCommand(w *command.World) *cobra.Command {
	f, s := &hubFlags{}, command.NewSettings(w, 0)
	cmd := &cobra.Command{
		Use:   "hub --store HOME [flags]",
		Short: "Serve the bus of a cluster",
		Long:  hubLong,
		Example: `  headrace hub --store /mnt/shared/headrace
  headrace hub --store s3://bucket/headrace --listen 0.0.0.0:4222
  headrace hub --store s3://bucket/headrace --listen 0.0.0.0:4222 --route 0.0.0.0:6222 --peers hub-0:6222,hub-1:6222,hub-2:6222`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), cmd, s) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.home, "store", "", "the cluster's home: a folder that all machines share, or s3://bucket/prefix (it is in the line to join by)")
	fs.StringVar(&f.listen, "listen", bus.DefaultListen, "address to listen on; port 0 picks one, and keeps it")
	fs.StringVar(&f.advertise, "advertise", "", "host, or host:port, by which others reach this one (default: that of --listen, or this machine's name)")
	fs.StringVar(&f.dir, "dir", "", "folder for the token, certificates and the queue, of this machine's own disk (default: headrace-hub in the user's cache folder)")
	fs.StringVar(&f.route, "route", "", "of three: address on which this one hears the others")
	fs.StringSliceVar(&f.peers, "peers", nil, "of three: where all three hear each other, as a:6222,b:6222,c:6222")
	fs.StringVar(&f.name, "name", "", "of three: a name that stays the same over restarts (default: of this machine)")
	fs.StringVar(&f.tlsDir, "tls-dir", "", "of three: folder with the ca.pem and ca.key that all three have (default: tls in --dir)")
	fs.StringVar(&f.ready, "ready-file", "", "file that gets the line to join by once the hub serves")
	s.Register(cmd)
	return cmd
}

func (f *hubFlags) serve(ctx context.Context, cmd *cobra.Command, s *command.Settings) error {
	if err := s.Complete(); err != nil {
		return err
	}
	say := sayTo(cmd)
	drain, ctx, closed := s.Watch(ctx, say.event)
	defer closed()
	hub, err := f.start(say)
	if err != nil {
		return err
	}
	defer hub.Shutdown()
	if err := readyHub(ctx, hub); err != nil {
		return command.End(command.ExitStopped, "the hub does not serve: %v", err)
	}
	home, err := node.HomeOf(f.home)
	if err != nil {
		return command.End(command.ExitUsage, "--store: %v", err)
	}
	line := node.JoinLine(hub.JoinURL(), home)
	if err := f.sayReady(line); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "the hub serves; another machine joins with:\n  headrace worker --join '%s'\n", line)
	select {
	case <-drain:
	case <-ctx.Done():
	}
	return nil
}

func (f *hubFlags) start(say *speaker) (*bus.Hub, error) {
	if f.home == "" {
		say.line("no --store: each machine that joins must set it, as the join line does not have it")
	}
	dir := f.dir
	if dir == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return nil, command.End(command.ExitUsage, "--dir: name a folder: %v", err)
		}
		dir = filepath.Join(caches, "headrace-hub")
	}
	hub, err := bus.StartHub(bus.HubConfig{
		Dir: dir, Listen: f.listen, Advertise: f.advertise, TLSDir: f.tlsDir, Route: f.route, Peers: f.peers, Name: f.name, Say: say.error,
	})
	if err != nil {
		return nil, command.EndOf(command.ExitUsage, err)
	}
	return hub, nil
}

func readyHub(ctx context.Context, hub *bus.Hub) error {
	ctx, stop := context.WithTimeout(ctx, readyWait)
	defer stop()
	return hub.Ready(ctx)
}

// sayReady writes the line to the file of --ready-file, whole or not at all. It is a secret.
func (f *hubFlags) sayReady(line string) error {
	if f.ready == "" {
		return nil
	}
	beside := f.ready + ".tmp"
	err := os.WriteFile(beside, []byte(line+"\n"), 0o600)
	if err == nil {
		err = os.Rename(beside, f.ready)
	}
	if err != nil {
		return command.End(command.ExitUsage, "--ready-file: %v", err)
	}
	return nil
}
