package tests

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/cluster/store/s3test"
)

// What the tests start is started by this name, in a folder that is there until all have run.
var built struct {
	dir     string
	command func() (string, error)
	newer   func() (string, error) // the command as it will be once versions have risen
}

func TestMain(m *testing.M) {
	s3test.Serve()
	if part := os.Getenv(fakeEnv); part != "" {
		fakes[part](os.Args[1:])
		return
	}
	dir, err := os.MkdirTemp("", "headrace-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir, built.command = dir, sync.OnceValues(func() (string, error) { return build(dir) })
	built.newer = sync.OnceValues(func() (string, error) { return buildNewer(dir) })
	stop := startSpawner()
	code := m.Run()
	stop()
	err = os.RemoveAll(dir)
	if leaked := goleak.Find(); code == 0 && errors.Join(err, leaked) != nil {
		fmt.Fprintln(os.Stderr, err, leaked)
		code = 1
	}
	os.Exit(code)
}

// spawner runs what starts processes, on a thread that is there until all tests have run: a
// process is to die with this one, and the system takes the thread that started it for that.
var spawner chan func()

func startSpawner() (stop func()) {
	spawner = make(chan func())
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread()
		for start := range spawner {
			start()
		}
	}()
	return func() { close(spawner); <-over }
}

// spawn starts a process.
func spawn(cmd *exec.Cmd) error {
	started := make(chan error)
	spawner <- func() { started <- cmd.Start() }
	return <-started
}

// build makes the full command, as a user would.
func build(dir string) (string, error) { return buildIn("..", filepath.Join(dir, "headrace")) }

// buildIn makes the command of the module in a folder: each has one of that name.
func buildIn(module, bin string, flags ...string) (string, error) {
	cmd := exec.Command("go", append(append([]string{"build", "-o", bin}, flags...), "./cmd/headrace")...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
}

// command is the full command's file: built here, or the one that STORM_COMMAND names.
func command(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("STORM_COMMAND"); bin != "" {
		return bin
	}
	bin, err := built.command()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// onlyLong leaves a storm to the long form. A short storm covers the same, or the storm needs a machine that
// has nothing else to do.
func onlyLong(t *testing.T) {
	t.Helper()
	if !long() && os.Getenv("STORM") != "all" {
		t.Skip("it is run with STORM=all, and with STORM=hour")
	}
}

// long says that the storms may take hours.
func long() bool { return lengthSaid() > 0 }

// lengthSaid returns the length of each storm by STORM, or 0.
func lengthSaid() time.Duration {
	if os.Getenv("STORM") == "hour" {
		return time.Hour
	}
	said, err := time.ParseDuration(os.Getenv("STORM"))
	if err != nil {
		return 0 // it is one of the other words
	}
	return said
}

// usually is the first in minutes and the second in hours.
func usually[T any](minutes, hours T) T {
	if long() {
		return hours
	}
	return minutes
}

// seeded is the test's chance. Its seed is printed, and STORM_SEED sets it.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) % 1e6
	if text := os.Getenv("STORM_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("STORM_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("STORM_SEED=%d go test -run '^%s$' . repeats this", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 0))
}

// portSource counts through the ports below those that clients are given (from 32768 on),
// from a place that differs between test processes.
type portSource struct{ n atomic.Int64 }

var ports portSource

func (s *portSource) next() string {
	const first, many = 20000, 12000
	return strconv.FormatInt(first+(int64(os.Getpid())*61+s.n.Add(1))%many, 10)
}
