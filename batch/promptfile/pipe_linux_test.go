package promptfile

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// A run that waits for a reader of its errors file, which is a named pipe, can be stopped. It waits before the first call.
func TestErrorsFileThatIsAPipe(t *testing.T) {
	d, drain := newFixture(t, ask("a")), make(chan struct{})
	d.cfg.Errors = d.out + ".errors"
	must.Do(t, syscall.Mkfifo(d.cfg.Errors, 0o600))
	d.cfg.Drain, d.cfg.Durability = drain, saver.OS
	job := d.open()
	over := make(chan error, 1)
	go func() { _, err := job.Begin(); over <- err }()
	close(drain)
	if err := <-over; !errors.Is(err, ErrHalted) {
		t.Errorf("stopped: %v", err)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
	d.cfg.Drain = nil
	d.answer = func(*Item) (provider.Reply, error) {
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400}
	}
	text := make(chan string)
	go func() {
		all, err := os.ReadFile(d.cfg.Errors)
		if err != nil {
			t.Error(err)
		}
		text <- string(all)
	}()
	if sums, _, err := d.run(); err != nil || sums.Failed != 1 {
		t.Errorf("%+v, %v", sums, err)
	}
	if got := <-text; got == "" {
		t.Error("nothing was read")
	}
}

// A run that waits for a reader of its output, which is a named pipe, can be stopped; one that
// finds a reader runs.
func TestOutputThatIsAPipe(t *testing.T) {
	d, drain := newFixture(t, ask("a")), make(chan struct{})
	must.Do(t, syscall.Mkfifo(d.out, 0o600))
	d.cfg.Drain, d.cfg.Durability = drain, saver.OS
	job := d.open()
	over := make(chan error)
	go func() { _, err := job.Begin(); over <- err }()
	select {
	case err := <-over:
		t.Fatalf("nobody reads, and it began: %v", err)
	default:
	}
	close(drain)
	if err := <-over; !errors.Is(err, ErrHalted) {
		t.Errorf("stopped: %v", err)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
	d.cfg.Drain = nil
	text := make(chan string)
	go func() {
		file, err := os.Open(d.out)
		if err != nil {
			t.Error(err)
		}
		all, _ := io.ReadAll(file)
		_ = file.Close()
		text <- string(all)
	}()
	if sums, _, err := d.run(); err != nil || sums.Succeeded != 1 {
		t.Errorf("%+v, %v", sums, err)
	}
	if got := <-text; got == "" {
		t.Error("nothing was read")
	}
}
