//go:build linux

package tests

import (
	"bytes"
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
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/store/s3test"
	"go.uber.org/goleak"
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

// A process is one of the command's, or was. What it says goes into a file, which is shown if
// the test fails.
type process struct {
	t    *testing.T
	name string
	args []string
	env  []string
	cwd  string // "": this process's own
	said string // the file; each life adds to it

	cmd    *exec.Cmd
	over   chan struct{} // closed when this life has ended
	code   int           // its exit code, -1 if it was killed
	frozen bool
}

// tail is the part of a process's output that is shown: enough for a stack.
const tail = 4 << 10

// newProcess is one that has not been started.
func newProcess(t *testing.T, dir, name string, args ...string) *process {
	t.Helper()
	if logs := os.Getenv("STORM_LOGS"); logs != "" {
		dir = filepath.Join(logs, t.Name())
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := &process{t: t, name: name, args: args, said: filepath.Join(dir, name+".log"), env: os.Environ()}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("── %s said last:\n%s", name, p.lastWords())
		}
	})
	return p
}

// start begins a life. The process dies with this one, whatever becomes of it.
func (p *process) start() {
	p.t.Helper()
	if p.running() {
		p.t.Fatalf("%s runs already", p.name)
	}
	file, err := os.OpenFile(p.said, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer file.Close()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.env, p.cwd, file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := spawn(p.cmd); err != nil {
		p.t.Fatal(err)
	}
	p.over, p.frozen = make(chan struct{}), false
	go p.await(p.cmd, p.over)
}

func (p *process) await(cmd *exec.Cmd, over chan<- struct{}) {
	err := cmd.Wait()
	p.code = 0
	var end *exec.ExitError
	if errors.As(err, &end) {
		p.code = end.ExitCode()
	} else if err != nil {
		p.code = -1
	}
	close(over)
}

func (p *process) running() bool {
	if p.over == nil {
		return false
	}
	select {
	case <-p.over:
		return false
	default:
		return true
	}
}

// signal goes to the process and whatever it has started.
func (p *process) signal(s syscall.Signal) {
	if p.running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, s) // it may have ended at this very moment
	}
}

// kill ends it at once, and returns when it is gone. A frozen one dies too.
func (p *process) kill() {
	if p.running() {
		p.signal(syscall.SIGKILL)
		<-p.over
	}
}

// freeze stops it where it is: to others it is there, and silent.
func (p *process) freeze() { p.signal(syscall.SIGSTOP); p.frozen = true }

func (p *process) thaw() { p.signal(syscall.SIGCONT); p.frozen = false }

// ends waits for it to end by itself, and gives its exit code.
func (p *process) ends(within time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.over:
		return p.code
	case <-timer.C:
		p.t.Fatalf("%s has not ended within %v", p.name, within)
		return -1
	}
}

// lastWords is the end of what it said.
func (p *process) lastWords() []byte {
	text, err := os.ReadFile(p.said)
	if err != nil {
		return fmt.Append(nil, err)
	}
	return text[max(0, len(text)-tail):]
}

// memory returns the memory that the process holds, in bytes; 0 if it is gone.
func (p *process) memory() (bytesUsed int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(text, []byte("VmRSS:"))
	_, _ = fmt.Fscan(bytes.NewReader(after), &bytesUsed)
	return bytesUsed << 10
}

// processor returns the processor time of the process in this life.
func (p *process) processor() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(text, []byte(") ")) // the name before it may hold anything
	fields := bytes.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	var user, system int64
	_, _ = fmt.Sscan(string(fields[11])+" "+string(fields[12]), &user, &system)
	return time.Duration(user+system) * tick
}

// tick is the unit of /proc's times on every Linux that Go runs on: USER_HZ is 100.
const tick = 10 * time.Millisecond
