//go:build unix

package bus

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// A hub that hangs answers nothing, and everything that is asked of it ends by its deadline.
func TestFrozenHub(t *testing.T) {
	t.Parallel()
	p := spawn(t, HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: tokenForTests})
	b := connect(t, p.url, "w1", func(c *Config) { c.AckWait = time.Hour })
	ctx := testContext(t)
	must.Do(t, b.Ensure(ctx))
	mustQueue(t, b, chunk(1), "")
	d := mustFetch(t, b, Chunks)
	p.freeze()
	calls := map[string]func() error{
		"Queue":       func() error { _, err := b.Queue(ctx, chunk(2), nil); return err },
		"Queued":      func() error { _, err := b.Queued(ctx, Chunks, "j"); return err },
		"Fetch":       func() error { _, _, err := b.Fetch(ctx, Chunks, "j", time.Second); return err },
		"Working":     func() error { return d.Working(ctx) },
		"Done":        func() error { return d.Done(ctx) },
		"Return":      func() error { return d.Return(ctx, 0) },
		"Purge":       func() error { return b.Purge(ctx, Chunks, "j") },
		"Ensure":      func() error { return b.Ensure(ctx) },
		"ReadLease":   func() error { _, err := b.ReadLease(ctx, time.Second); return err },
		"UpdateLease": func() error { _, err := b.UpdateLease(ctx, nil, 0, time.Second); return err },
	}
	ended := make(chan string, len(calls))
	for name, call := range calls {
		go func() {
			if err := call(); !errors.Is(err, ErrNoAnswer) && !errors.Is(err, ErrAway) {
				t.Errorf("%s: %v", name, err)
			}
			ended <- name
		}()
	}
	for range calls {
		<-ended
	}
	eventually(t, "the client notices", func() bool { return !b.Connected() })
	if err := b.Say(Status, "w1", 1); !errors.Is(err, ErrAway) {
		t.Errorf("what is said while nobody hears it: %v", err)
	}
	p.thaw()
	eventually(t, "the client reconnects", b.Connected)
	must.Do(t, d.Done(ctx))
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
	must.Do(p.t, p.cmd.Process.Signal(s))
}
