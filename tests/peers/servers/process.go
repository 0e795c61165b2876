package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// listenWithin is long for a server that reads a page of configuration: the machine
// may be busy.
const listenWithin = 10 * time.Second

// sbin is the folder in which Debian installs servers. It is not in everybody's PATH.
const sbin = "/usr/sbin"

func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(filepath.Join(sbin, name)); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%w: %s", ErrAbsent, name)
}

// freePort returns a port that is free now. If another process takes it before the server
// does, the start fails with an error.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("servers: port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// launch starts a server and waits until it listens.
func launch(ctx context.Context, dir, addr string, argv ...string) (stop func(), err error) {
	log, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	ctx, cancel := context.WithCancel(ctx)
	ended, err := process(ctx, log, argv)
	stop = func() { cancel(); <-ended }
	if err == nil {
		err = listens(addr, ended)
	}
	if err != nil {
		stop()
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("servers: %s: %w: %s", argv[0], err, strings.TrimSpace(string(said)))
	}
	return stop, nil
}

// process runs until the context ends; the channel is closed when it is gone.
func process(ctx context.Context, log *os.File, argv []string) (<-chan struct{}, error) {
	ended := make(chan struct{})
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // nginx ends its workers then
	cmd.WaitDelay = 3 * time.Second                                          // a process that does not end is killed
	if err := cmd.Start(); err != nil {
		close(ended)
		return ended, err
	}
	go func() {
		_ = cmd.Wait() // its end is no news, as the context asked for it
		close(ended)
	}()
	return ended, nil
}

// listens waits until the server takes connections. It gives up when the process has ended, or
// after listenWithin.
func listens(addr string, ended <-chan struct{}) error {
	for by := time.Now().Add(listenWithin); time.Now().Before(by); {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			return c.Close()
		}
		select {
		case <-ended:
			return errors.New("it ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("does not listen after %v", listenWithin)
}

// behind starts a backend and, in front of it, a server. Configure writes the configuration
// of that server and returns its command.
func behind(ctx context.Context, dir string, latency time.Duration, configure func(front, back string) ([]string, error)) (*Peer, error) {
	front, err := freePort()
	if err != nil {
		return nil, err
	}
	back, stopBack, err := listen(backend(latency))
	if err != nil {
		return nil, err
	}
	var stopFront func()
	argv, err := configure(front, back)
	if err == nil {
		stopFront, err = launch(ctx, dir, front, argv...)
	}
	if err != nil {
		stopBack()
		return nil, err
	}
	return &Peer{URL: "http://" + front + "/v1", stops: []func(){stopFront, stopBack}}, nil
}
