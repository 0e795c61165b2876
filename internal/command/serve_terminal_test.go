//go:build unix

package command

import (
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// On a terminal, serve shows who waits in a panel. SIGHUP there reads the files again, and a terminal that is closed
// ends it.
func TestServeOnATerminal(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // so that no child inherits that it is ignored, where the tests run under nohup
	defer signal.Stop(heard)
	_, base := serveFor(t, sim.Config{RPM: 60, Burst: time.Second, Headers: true, RetryAfter: sim.Always})
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := free.Addr().String()
	must.Do(t, free.Close())
	o := startOnTerminal(t, "exec headrace serve --open --rpm 60 --api-key-env none --base-url "+base+" --addr "+addr, usual)
	o.until("export OPENAI_BASE_URL=http://" + addr + "/v1")
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	gone := make(chan struct{}, 4)
	for range cap(gone) {
		go func() {
			defer func() { gone <- struct{}{} }()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader(hello))
			req.Header.Set("Content-Type", "application/json")
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close() // its end does not matter here
			}
		}()
	}
	o.until("Waiting   ")
	o.until(" normal)")
	o.until("anyone: ")
	must.Do(t, o.cmd.Process.Signal(syscall.SIGHUP))
	o.until("SIGHUP: the files are read again")
	must.Do(t, o.master.Close())
	_ = o.cmd.Wait() // the code says it
	if code := o.cmd.ProcessState.ExitCode(); code != exit.OK {
		t.Errorf("exit code %d", code)
	}
	for range cap(gone) {
		<-gone
	}
}

// The panel is painted on while calls in flight finish.
func TestServeShowsItsDrainOnATerminal(t *testing.T) {
	_, base := serveFor(t, sim.Config{Errors: sim.Rates{Hang: 1}})
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := free.Addr().String()
	must.Do(t, free.Close())
	o := startOnTerminal(t, "exec headrace serve --open --api-key-env none --base-url "+base+" --addr "+addr, usual)
	o.until("export OPENAI_BASE_URL=http://" + addr + "/v1")
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader(hello))
		req.Header.Set("Content-Type", "application/json")
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close() // its end does not matter here
		}
	}()
	o.until("anyone: 0 waiting, 1 in flight")
	must.Do(t, o.cmd.Process.Signal(syscall.SIGTERM))
	o.until("headrace serve  draining")
	must.Do(t, o.cmd.Process.Signal(syscall.SIGINT))
	_ = o.cmd.Wait() // the code says it
	if code := o.cmd.ProcessState.ExitCode(); code != exit.OK {
		t.Errorf("exit code %d", code)
	}
	<-gone
}
