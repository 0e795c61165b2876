package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/observe"
)

// get asks a server, as a client that names a host.
func get(t *testing.T, addr, path, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Close = host, true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// noPage is a page that says nothing.
type noPage struct{}

func (noPage) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {})
}

// listen serves a run that stands as given; nil: it has not begun.
func listen(t *testing.T, addr string, stand *Stand) *exposition.Server {
	t.Helper()
	c := NewCollector(func() (Stand, bool) {
		if stand == nil {
			return Stand{}, false
		}
		return *stand, true
	})
	s, err := Listen(addr, noPage{}, func(bare bool) *event.Progress {
		if stand == nil {
			return nil
		}
		e := event.Of(&stand.Snapshot, event.Context{Latest: fmt.Sprintf("bare is %v", bare)})
		return &e
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Only this machine's names are answered, so that no page elsewhere reads the figures.
func TestForeignHostsAreRefused(t *testing.T) {
	s := listen(t, ":0", nil)
	if !s.Local() {
		t.Fatalf("%s: not a loopback address", s.Addr())
	}
	_, port, _ := net.SplitHostPort(s.Addr())
	for host, want := range map[string]int{
		"127.0.0.1:" + port: http.StatusOK, "localhost:" + port: http.StatusOK, "localhost": http.StatusOK, "[::1]:" + port: http.StatusOK,
		"evil.example": http.StatusForbidden, "evil.example:" + port: http.StatusForbidden, "127.0.0.1.evil.example": http.StatusForbidden,
		"localhost.evil.example:" + port: http.StatusForbidden, "10.0.0.1:" + port: http.StatusForbidden,
	} {
		for _, path := range []string{"/metrics", "/"} {
			if code, body := get(t, s.Addr(), path, host); code != want {
				t.Errorf("host %q, %s: %d %s", host, path, code, body)
			}
		}
	}
	if code, _ := get(t, s.Addr(), "/status", "localhost"); code != http.StatusServiceUnavailable {
		t.Errorf("status of a run that has not begun: %d", code)
	}
	if code, _ := get(t, s.Addr(), "/secrets", "localhost"); code != http.StatusNotFound {
		t.Errorf("another path: %d", code)
	}
}

// A server shows the run's metrics and those of its process, and its progress.
func TestServerShowsTheRun(t *testing.T) {
	stand := Stand{Snapshot: observe.Snapshot{At: time.Now(), Began: time.Now(), Total: 7, Answered: 3}, Pending: 2}
	stand.Failures = []observe.Failure{{Kind: "invalid", Count: 1, Examples: []observe.Example{{ID: "one", Message: "a prompt"}}}}
	s := listen(t, "127.0.0.1:0", &stand)
	_, body := get(t, s.Addr(), "/metrics", "localhost")
	for _, line := range []string{"headrace_run_items 7", "headrace_journal_pending_lines 2", "go_goroutines ", "process_open_fds "} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, body)
		}
	}
	if _, body = get(t, s.Addr(), "/status", "localhost"); !strings.HasPrefix(body, `{"event":"progress",`) || !strings.Contains(body, "a prompt") {
		t.Errorf("status: %s", body)
	}
}

// At an address that others reach, only a program on this machine hears of failures, and no page that has named itself after it.
func TestFailuresStayHere(t *testing.T) {
	stand := Stand{Snapshot: observe.Snapshot{At: time.Now(), Began: time.Now(), Total: 7}}
	stand.Failures = []observe.Failure{{Kind: "invalid", Count: 1, Examples: []observe.Example{{ID: "one", Message: "a prompt"}}}}
	s := listen(t, "0.0.0.0:0", &stand)
	_, port, _ := net.SplitHostPort(s.Addr())
	for host, shows := range map[string]bool{"localhost:" + port: true, "127.0.0.1:" + port: true, "evil.example:" + port: false} {
		code, body := get(t, "127.0.0.1:"+port, "/status", host)
		if code != http.StatusOK || strings.Contains(body, "a prompt") != shows || strings.Contains(body, "bare is false") != shows {
			t.Errorf("host %s: %d %s", host, code, body)
		}
	}
}

// A file is written at once, in each period and at the end; a fault is said once.
func TestFileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.prom")
	clock, over, stand := clockwork.NewFakeClock(), make(chan struct{}), Stand{Pending: 1}
	f := NewFile(path, NewCollector(func() (Stand, bool) { return stand, true }))
	faults, kept := make(chan error, 10), make(chan struct{})
	go func() {
		defer close(kept)
		f.Keep(clock, over, func(err error) { faults <- err })
	}()
	if err := clock.BlockUntilContext(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	clock.Advance(fileEvery)
	for text := ""; !strings.Contains(text, "headrace_journal_pending_lines 1"); {
		one, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		text = string(one)
	}
	stand.Pending = 0 // Keep reads it only after over is closed
	close(over)
	<-kept
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "headrace_journal_pending_lines 0") || strings.Contains(string(text), "go_goroutines") {
		t.Errorf("at the end: %v\n%s", err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != fileMode {
		t.Errorf("rights: %v %v", info, err)
	}
	f = NewFile(filepath.Join(path, "no", "folder"), NewCollector(func() (Stand, bool) { return Stand{}, false }))
	clock, over, kept = clockwork.NewFakeClock(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(kept)
		f.Keep(clock, over, func(err error) { faults <- err })
	}()
	if err := clock.BlockUntilContext(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	clock.Advance(fileEvery)
	<-faults
	close(over)
	<-kept
	if len(faults) > 0 {
		t.Errorf("a second fault was said: %v", <-faults)
	}
}
