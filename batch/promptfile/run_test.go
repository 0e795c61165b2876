package promptfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// jobFixture is a folder with a prompt file, and a provider that notes what it is asked.
type jobFixture struct {
	t       *testing.T
	dir     string
	in, out string
	cfg     Config
	asked   chan string
	answer  func(it *Item) (provider.Reply, error)
}

func newFixture(t *testing.T, prompts ...string) *jobFixture {
	t.Helper()
	d := &jobFixture{t: t, dir: t.TempDir(), asked: make(chan string, 1000)}
	d.in, d.out = filepath.Join(d.dir, "in.jsonl"), filepath.Join(d.dir, "out.jsonl")
	write(t, d.in, strings.Join(prompts, "\n")+"\n")
	d.answer = func(*Item) (provider.Reply, error) { return good, nil }
	return d
}

var good = provider.Reply{Status: 200, RequestID: "r", Body: []byte(`{"ok":true}`)}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func ask(id string) string { return fmt.Sprintf(`{"id":%q,"prompt":"p","model":"m"}`, id) }

func (d *jobFixture) open() *Job {
	d.t.Helper()
	if d.cfg.Input.files == nil {
		var err error
		if d.cfg.Input, err = File(d.in); err != nil {
			d.t.Fatal(err)
		}
	}
	d.cfg.Output = d.out
	job := must.Get(Open(d.cfg))(d.t)
	return job
}

// run runs the file in a bubble, one call after the other, and tells what was asked.
func (d *jobFixture) run(opts ...batch.Option) (sums Sums, asked string, err error) {
	d.t.Helper()
	d.cfg.Concurrency = 1
	synctest.Test(d.t, func(t *testing.T) {
		job := d.open()
		sums, err = job.Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) {
			d.asked <- it.ID
			return d.answer(it)
		}, opts...)
		if fault := job.Close(); fault != nil {
			t.Error(fault)
		}
	})
	for len(d.asked) > 0 {
		asked += <-d.asked + " "
	}
	return sums, strings.TrimSpace(asked), err
}

// progress returns the progress shown by the files.
func (d *jobFixture) progress() *journal.Progress {
	d.t.Helper()
	p := must.Get(journal.ReadProgress(d.out, journal.ErrorsPath(d.out)))(d.t)
	return p
}

// A run that stops at a quota leaves what it did not ask to the next one: it has no line
// in either file, and is asked then, and only that.
func TestNotRunIsAskedNextTime(t *testing.T) {
	const items, quota = 50, 10
	var lines []string
	for n := range items {
		lines = append(lines, ask(fmt.Sprint(n)))
	}
	d := newFixture(t, lines...)
	left := quota
	d.answer = func(*Item) (provider.Reply, error) {
		if left--; left < 0 {
			return provider.Reply{}, &provider.Error{Kind: provider.QuotaExhausted, Status: 429}
		}
		return good, nil
	}
	sums, _, err := d.run()
	if !errors.Is(err, batch.ErrStopped) || sums.Stopped == nil || sums.Succeeded != quota || sums.Failed != 0 {
		t.Errorf("the first run: %+v, %v", sums, err)
	}
	if p := d.progress(); p.Done != quota || p.Failed != 0 {
		t.Errorf("after the first run: %+v", p)
	}
	d.answer = func(*Item) (provider.Reply, error) { return good, nil }
	sums, asked, err := d.run()
	if n := len(strings.Fields(asked)); n != items-quota || err != nil || sums.EarlierDone != quota {
		t.Errorf("the second run asked %d: %+v, %v", n, sums, err)
	}
	if p := d.progress(); p.Done != items || p.Failed != 0 {
		t.Errorf("in the end: %+v", p)
	}
}

// A later run asks what has not ended. Items that failed for good have ended, unless
// they are to be tried again; then each has one line in both files together.
func TestGoesOn(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), ask("c"))
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "b" {
			return provider.Reply{}, batch.Permanent(errors.New("no"))
		}
		return good, nil
	}
	d.cfg.Reader.Limit = 2
	if sums, asked, err := d.run(); err != nil || asked != "a b" || sums.Kinds["invalid"] != 1 {
		t.Errorf("%s, %+v, %v", asked, sums, err)
	}
	d.cfg.Reader.Limit = 0
	if sums, asked, err := d.run(); err != nil || asked != "c" || sums.EarlierDone != 1 || sums.EarlierFailed != 1 {
		t.Errorf("%s, %+v, %v", asked, sums, err)
	}
	d.cfg.RetryFailed, d.answer = true, func(*Item) (provider.Reply, error) { return good, nil }
	if _, asked, err := d.run(); err != nil || asked != "b" {
		t.Errorf("%s, %v", asked, err)
	}
	if text, err := os.ReadFile(journal.ErrorsPath(d.out)); err != nil || len(text) > 0 {
		t.Errorf("%v, left in the errors file: %s", err, text)
	}
	if p := d.progress(); p.Done != 3 {
		t.Errorf("%+v", p)
	}
}

// Nothing is called and no file made if a line is bad, and each is named; skipped ones go
// to the errors file.
func TestBadLines(t *testing.T) {
	d := newFixture(t, "{x", ask("a"), "[]")
	_, asked, err := d.run()
	var bad *BadLines
	if !errors.As(err, &bad) || bad.All != 2 || asked != "" || !strings.Contains(err.Error(), "in.jsonl:1:") || !strings.Contains(err.Error(), "in.jsonl:3:") {
		t.Errorf("%v, asked %q", err, asked)
	}
	if left, _ := os.ReadDir(d.dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	d.cfg.SkipBad = true
	if sums, asked, err := d.run(); err != nil || asked != "a" || sums.Skipped != 2 {
		t.Errorf("%+v, %v, asked %q", sums, err, asked)
	}
	if p := d.progress(); p.Done != 1 || p.Failures[CodeInvalidLine] != 2 {
		t.Errorf("%+v", p)
	}
}

// While a job is open nobody else gets the output; the input is never taken for it.
func TestOneJobAnOutput(t *testing.T) {
	d := newFixture(t, ask("a"))
	job := d.open()
	if _, err := Open(d.cfg); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
	if err := job.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	d.cfg.Output = d.in
	if _, err := Open(d.cfg); !errors.Is(err, journal.ErrSameFile) {
		t.Errorf("the input as output: %v", err)
	}
	if left, _ := os.ReadDir(d.dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// Begin says what it has done to the files, and a job that is not run closes them.
func TestBegin(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"))
	d.run()
	whole, _ := os.ReadFile(d.out)
	write(t, d.out, string(whole)+`{"id":"hr-`)
	before, noProc := os.ReadDir("/proc/self/fd")
	job := d.open()
	if plan, err := job.Plan(); err != nil || plan.Items != 2 || plan.Done != 2 || plan.Left() != 0 {
		t.Errorf("%+v, %v", plan, err)
	}
	begun, err := job.Begin()
	if err != nil || begun.Results != 2 || len(begun.Torn) != 1 || begun.Torn[0] != (Torn{d.out, 10}) || begun.Fresh {
		t.Errorf("%+v, %v", begun, err)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
	if after, _ := os.ReadDir("/proc/self/fd"); noProc == nil && len(after) > len(before) {
		t.Errorf("%d files are open, %d were", len(after), len(before))
	}
	if text, _ := os.ReadFile(d.out); string(text) != string(whole) {
		t.Errorf("the file holds %q", text)
	}
	d.cfg.Fresh = true
	job = d.open()
	begun, err = job.Begin()
	if err := errors.Join(err, job.Close()); err != nil || !begun.Fresh || len(begun.Kept) != 1 || begun.Kept[0] != (Kept{d.out, d.out + ".bak"}) {
		t.Errorf("%+v, %v", begun, err)
	}
}

// A run that must stop before it begins calls nothing, however far it was prepared.
func TestDrainedBeforeTheFirstCall(t *testing.T) {
	d := newFixture(t, ask("a"))
	for _, prepare := range []func(*Job) error{
		func(*Job) error { return nil },
		func(j *Job) error { _, err := j.Plan(); return err },
		func(j *Job) error { _, err := j.Plan(); _, err2 := j.Begin(); return errors.Join(err, err2) },
	} {
		drain := make(chan struct{})
		d.cfg.Drain = drain
		job := d.open()
		must.Do(t, prepare(job))
		close(drain)
		sums, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
			t.Error("it calls")
			return good, nil
		})
		if fault := job.Close(); !errors.Is(err, ErrHalted) || sums.RunErr == nil || fault != nil {
			t.Errorf("%v, %+v, %v", err, sums, fault)
		}
	}
}

// A stream is left where the run ends, though it never does: its goroutine ends with the
// next read.
func TestStreamIsLeft(t *testing.T) {
	d := newFixture(t)
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	drain := make(chan struct{})
	d.cfg.Input, d.cfg.Drain = Stream("pipe", r), drain
	d.answer = func(*Item) (provider.Reply, error) { close(drain); return good, nil }
	d.cfg.Concurrency = 1
	job := d.open()
	go func() { _, _ = io.WriteString(w, ask("a")+"\n") }()
	sums, err := job.Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) { return d.answer(it) })
	if err := errors.Join(err, job.Close()); err != nil || !sums.Left || sums.Succeeded != 1 {
		t.Errorf("%+v, %v", sums, err)
	}
}

// A stream whose lanes have stopped is left, though another lane flows on the Shared: its run has ended.
func TestStreamOnASharedIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(batch.NewShared())(t)
		defer shared.Close()
		must.Get(batch.Run(t.Context(), slices.Values([]int{1}), func(context.Context, int) (int, error) { return 0, nil },
			batch.WithShared(shared), batch.WithPoolOf(func(int) string { return "another" })))(t)
		d := newFixture(t)
		r, w := io.Pipe()
		defer func() { _ = w.Close() }()
		d.cfg.Input = Stream("pipe", r)
		job := d.open()
		go func() { _, _ = io.WriteString(w, ask("a")+"\n") }()
		sums, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
			return provider.Reply{}, &provider.Error{Kind: provider.QuotaExhausted, Status: 429}
		}, batch.WithShared(shared))
		if fault := job.Close(); !errors.Is(err, batch.ErrStopped) || !sums.Left || fault != nil {
			t.Errorf("%v, %+v, %v", err, sums, fault)
		}
	})
}

// A disk that is full, or broken, ends the run soon, and what is not saved is counted.
func TestFaultEndsTheRun(t *testing.T) {
	var lines []string
	for n := range 200 {
		lines = append(lines, ask(fmt.Sprint(n)))
	}
	for name, full := range map[string]bool{"/dev/full": true, "gone": false} {
		d := newFixture(t, lines...)
		if full {
			if _, err := os.Stat(name); err != nil {
				t.Skip(err)
			}
			d.out = name
			d.cfg.Errors = filepath.Join(d.dir, "errors")
		}
		reported := make(chan error, 2)
		d.cfg.Watch.Fault = func(err error) { reported <- err }
		d.answer = func(*Item) (provider.Reply, error) {
			if !full {
				_ = os.Remove(d.out)
			}
			return good, nil
		}
		sums, asked, err := d.run()
		if n := len(strings.Fields(asked)); n == 0 || n > 50 || sums.Unsaved != n || sums.FilesErr == nil {
			t.Errorf("%s: %d asked, %d not saved, %v", name, n, sums.Unsaved, err)
		}
		if len(reported) != 1 || DiskFull(<-reported) != full || !full && errors.Is(err, batch.ErrDrained) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without Lane and Cost, items have the lanes of their models, and a call costs one
// request.
func TestItemsHaveLanesAndCosts(t *testing.T) {
	d := newFixture(t, ask("a"))
	d.answer = func(it *Item) (provider.Reply, error) {
		if c := it.Cost(); it.Pool() != "m" || c.Requests != 1 || c.Input <= 0 || it.Asks().Endpoint != prompts.ChatCompletions {
			t.Errorf("%s, %+v, %+v", it.Pool(), c, it.Asks())
		}
		return good, nil
	}
	d.run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A job widens at once also after a fault: by then answers that came in without a place may have given back those
// that nobody was to have yet.
func TestConcurrencyAfterAFault(t *testing.T) {
	d := newFixture(t, ask("a"))
	d.cfg.Concurrency, d.cfg.MostConcurrency = 1, 8
	synctest.Test(t, func(t *testing.T) {
		d.cfg.Control = batch.NewControl()
		job := d.open()
		sums, err := job.Run(t.Context(), func(ctx context.Context, _ *Item) (provider.Reply, error) {
			for len(job.places) > 0 {
				<-job.places
			}
			return good, job.SetConcurrency(ctx, 8)
		})
		if must.Do(t, job.Close()); err != nil || sums.Succeeded != 1 {
			t.Errorf("%v, %+v", err, sums)
		}
	})
}

// What Began changes by the job's control holds for the first item already.
func TestControlHoldsFromTheFirstItem(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), ask("c"))
	d.cfg.Concurrency, d.cfg.MostConcurrency = 3, 3
	synctest.Test(t, func(t *testing.T) {
		began, inFlight := time.Now(), atomic.Int64{}
		d.cfg.Control = batch.NewControl()
		job := d.open()
		job.cfg.Watch.Began = func() {
			must.Do(t, errors.Join(d.cfg.Control.Pause(t.Context()), job.SetConcurrency(t.Context(), 1)))
			time.AfterFunc(time.Hour, func() { must.Do(t, d.cfg.Control.Resume(t.Context())) })
		}
		sums, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
			if n := inFlight.Add(1); n > 1 || time.Since(began) < time.Hour {
				t.Errorf("after %v there are %d calls", time.Since(began), n)
			}
			time.Sleep(time.Second)
			inFlight.Add(-1)
			return good, nil
		})
		if must.Do(t, job.Close()); err != nil || sums.Succeeded != 3 {
			t.Errorf("%v, %+v", err, sums)
		}
	})
}
