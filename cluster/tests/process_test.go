package tests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

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
func (p *process) memory() (bytesHeld int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(text, []byte("VmRSS:"))
	_, _ = fmt.Fscan(bytes.NewReader(after), &bytesHeld)
	return bytesHeld << 10
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
