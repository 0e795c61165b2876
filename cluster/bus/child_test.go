package bus

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// childMain is this test binary as a hub of its own, to be killed and frozen.
func childMain() {
	var told hubWords
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &told); err != nil {
		fmt.Println("error:", err)
		os.Exit(2)
	}
	hub, err := StartHub(HubConfig{
		Dir: told.Dir, Listen: told.Listen, Token: told.Token, Route: told.Route, Peers: told.Peers, Name: told.Name, TLS: told.TLS,
		TLSDir: told.TLSDir, Say: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(2)
	}
	fmt.Println("join:", hub.LocalURL())
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // it ends with the test, however that ends
	hub.Shutdown()
}

// hubWords are the parts of a HubConfig that a process can be told.
type hubWords struct {
	Dir, Listen, Token, Route, Name, TLSDir string
	Peers                                   []string
	TLS                                     bool
}

// A process is a hub in a process of its own.
type process struct {
	t      testing.TB
	config HubConfig
	cmd    *exec.Cmd
	stderr *strings.Builder
	url    string
}

// spawn starts a hub in a process that ends with the test.
func spawn(t testing.TB, config HubConfig) *process {
	p := &process{t: t, config: config}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	c := p.config
	data, err := json.Marshal(hubWords{
		Dir: c.Dir, Listen: c.Listen, Token: c.Token, Route: c.Route, Name: c.Name, TLSDir: c.TLSDir, Peers: c.Peers, TLS: c.TLS,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.stderr = &strings.Builder{}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(data))
	p.cmd.Stderr = p.stderr
	if _, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "join: ")
	if !ok {
		p.kill()
		p.t.Fatalf("the hub did not start: %q %v\n%s", line, err, p.stderr)
	}
	p.url = url
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// freeze returns when the process has stopped, which takes a busy machine a while.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == nil && status.Stopped() {
			return
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			p.t.Fatal(err)
		}
	}
}

func (p *process) thaw() { p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
