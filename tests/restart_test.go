//go:build unix

package tests

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// A strict is a server that refuses its first calls, asks for a wait, and notes when it is
// called again.
type strict struct {
	mu      sync.Mutex
	askedAt time.Time // when it first asked for the wait
	killed  bool      // the first process is gone
	next    time.Time // the first call of the second
}

const strictWait = 5 * time.Second

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.killed && s.next.IsZero() {
		s.next = now
	}
	w.Header().Set("Content-Type", "application/json")
	if s.killed {
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		return
	}
	if s.askedAt.IsZero() {
		s.askedAt = now
	}
	w.Header().Set("Retry-After", fmt.Sprint(int(strictWait.Seconds())))
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`)
}

// A process that is killed while it waits as long as the server asked for is followed by
// one that waits for the rest, by the clock of the server; under both laws. Then it makes
// its calls, and each item has one result.
func TestKilledWhileItWaits(t *testing.T) {
	bin := buildCommand(t)
	for _, law := range []string{"model", "plain"} {
		t.Run(law, func(t *testing.T) {
			t.Parallel() // they wait, and do nothing
			s := &strict{}
			server := httptest.NewServer(s)
			defer server.Close()
			dir := t.TempDir()
			in, out, state := filepath.Join(dir, "p.jsonl"), filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "out.state.json")
			writeQuestions(t, in, 5)
			args := []string{"run", in, "-o", out, "--base-url", server.URL + "/v1", "--model", "m", "--law", law, "--progress", "none"}
			first := exec.Command(bin, args...)
			must.Do(t, first.Start())
			saysToWait(t, state)
			_ = first.Process.Kill()
			_ = first.Wait()
			s.mu.Lock()
			s.killed = true
			askedAt := s.askedAt
			s.mu.Unlock()
			if text, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if waited := s.next.Sub(askedAt); waited < strictWait {
				t.Errorf("called again %v after the server asked for %v", waited, strictWait)
			}
			if text, err := os.ReadFile(out); err != nil || strings.Count(string(text), "\n") != 5 {
				t.Errorf("%s %v", text, err)
			}
		})
	}
}

// saysToWait waits until a process has saved that it is to wait.
func saysToWait(t *testing.T, state string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		text, err := os.ReadFile(state)
		if err == nil && strings.Contains(string(text), `"until":`) {
			return
		}
	}
}
