//go:build unix

package command

import (
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// Calls of several programs that come at once, many more than are let in, are all answered: no client sees a
// refusal, and the provider hardly one.
func TestProgramsAtOnceSeeNoRefusal(t *testing.T) {
	server, base := serveFor(t, sim.Config{RPM: 6000, Burst: 200 * time.Millisecond, Headers: true, RetryAfter: sim.Always, Latency: sim.Latency{Median: 20 * time.Millisecond}})
	s := startServing(t, t.TempDir(), "--base-url", base, "--api-key-env", "none")
	var programs sync.WaitGroup
	for range 8 {
		client := *s
		client.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}} // each program has its connections
		t.Cleanup(client.client.CloseIdleConnections)
		for range 40 {
			programs.Go(func() {
				if status, text, _ := client.chat(hello); status != http.StatusOK {
					t.Errorf("%d %s", status, text)
				}
			})
		}
	}
	programs.Wait()
	if b := server.Books(); b.Accepted != 320 || b.Refused429 > 3 {
		t.Errorf("%d accepted, %d refused", b.Accepted, b.Refused429)
	}
}

// A killed server loses what waits, and its successor knows the limits: programs that try again are answered, and
// the provider, which names no limit, sees no burst.
func TestRestartAfterAKill(t *testing.T) {
	server, base := serveFor(t, sim.Config{RPM: 6000, Burst: 500 * time.Millisecond})
	folder := t.TempDir()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := free.Addr().String()
	must.Do(t, free.Close())
	args := []string{"--base-url", base, "--api-key-env", "none", "--addr", addr, "--state", "state.json", "--token-file", "token"}
	s := startServing(t, folder, args...)
	all := func(n int, ask func()) {
		var calls sync.WaitGroup
		for range n {
			calls.Go(ask)
		}
		calls.Wait()
	}
	answered := func() {
		if status, text, _ := s.chat(hello); status != http.StatusOK {
			t.Errorf("%d %s", status, text)
		}
	}
	all(400, answered) // the limit is found
	for len(must.Get(filepath.Glob(filepath.Join(folder, "state.json")))(t)) == 0 {
		time.Sleep(time.Millisecond) // a save comes every few seconds
	}
	var lost sync.WaitGroup
	for range 100 {
		lost.Go(func() { _, _, _ = s.chat(hello) })
	}
	s.until(func(st stands) bool { return st.Waiting > 20 })
	must.Do(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	lost.Wait()
	before := server.Books().Refused429
	s = startServing(t, folder, args...)
	all(200, answered)
	if refused := server.Books().Refused429 - before; refused > 150 { // hundreds without the state
		t.Errorf("%d refused after the restart, %d before", refused, before)
	}
}
