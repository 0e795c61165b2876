package promptfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// inOrder runs twenty prompts in the order of the input, with eight calls in flight that
// take longer the earlier their item stands, but for those before that number.
func (d *jobFixture) inOrder(ctx context.Context, stuck int) (sums Sums) {
	d.t.Helper()
	d.cfg.InputOrder, d.cfg.Concurrency = true, 8
	job := d.open()
	sums, _ = job.Run(ctx, func(ctx context.Context, it *Item) (provider.Reply, error) {
		wait := time.Minute / time.Duration(it.Line)
		if it.Line <= stuck {
			wait = time.Hour
		}
		select {
		case <-time.After(wait):
			return good, nil
		case <-ctx.Done():
			return provider.Reply{}, ctx.Err()
		}
	}, batch.WithAttemptTimeout(0))
	if err := job.Close(); err != nil {
		d.t.Error(err)
	}
	return sums
}

func twenty() (lines, ids []string) {
	for n := range 20 {
		ids = append(ids, fmt.Sprintf("i%02d", n))
		lines = append(lines, ask(ids[n]))
	}
	return lines, ids
}

// Results that stand before one that was abandoned are in order in the end: the run that
// goes on brings all of them into order, in a file and in a stream, and says so. A run that
// finds them in order says nothing.
func TestInputOrderAfterCallsWereAbandoned(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			lines, ids := twenty()
			d := newFixture(t, lines...)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			sums := d.inOrder(ctx, 3)
			if got := idsIn(t, d.out); len(got) == 0 || got[0] == ids[0] || sums.Arranged || sums.Unordered {
				t.Errorf("the abandoned run left %q, %+v", got, sums)
			}
			if stream {
				d.cfg.Input = Stream("pipe", strings.NewReader(strings.Join(lines, "\n")))
			}
			if sums := d.inOrder(t.Context(), 0); sums.Err() != nil || !sums.Arranged || sums.Unordered {
				t.Errorf("%+v", sums)
			}
			if got := idsIn(t, d.out); !slices.Equal(got, ids) {
				t.Errorf("in the end: %q", got)
			}
			d.cfg.Input = Input{}
			if sums := d.inOrder(t.Context(), 0); sums.Err() != nil || sums.Arranged || sums.Unordered {
				t.Errorf("once more: %+v", sums)
			}
		})
	}
}

// What failed and is tried again stands in its place.
func TestInputOrderOfWhatIsTriedAgain(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), ask("c"))
	d.cfg.InputOrder = true
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "b" {
			return provider.Reply{}, batch.Permanent(errors.New("no"))
		}
		return good, nil
	}
	d.run()
	d.answer, d.cfg.RetryFailed = func(*Item) (provider.Reply, error) { return good, nil }, true
	if sums, asked, err := d.run(); err != nil || asked != "b" || !sums.Arranged {
		t.Errorf("asked %q, %+v, %v", asked, sums, err)
	}
	if got := idsIn(t, d.out); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}

// A run may stop before its end, or be stopped while it brings the lines into order. It
// then says that they may be out of order; the next run sees to it.
func TestInputOrderIsLeftToTheNextRun(t *testing.T) {
	lines, ids := twenty()
	d := newFixture(t, lines...)
	d.cfg.Reader.Limit = 5
	d.run()
	slices.Reverse(lines)
	slices.Reverse(ids)
	write(t, d.in, strings.Join(lines, "\n"))
	d.cfg.Reader.Limit, d.cfg.InputOrder = 0, true
	d.cfg.Concurrency = 1
	for _, last := range []string{ids[3], ids[14]} { // the latter is the last that is asked
		synctest.Test(t, func(t *testing.T) {
			drain, asked := make(chan struct{}), ""
			d.cfg.Drain = drain
			job := d.open()
			sums, _ := job.Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) {
				if asked = it.ID; asked == last {
					close(drain)
				}
				return good, nil
			})
			if err := job.Close(); err != nil || !sums.Unordered || sums.Arranged || sums.FilesErr != nil || asked != last {
				t.Errorf("ended at %s of %s: %+v, %v", asked, last, sums, err)
			}
		})
	}
	d.cfg.Drain = nil
	if sums, asked, err := d.run(); err != nil || asked != "" || !sums.Arranged || sums.Unordered {
		t.Errorf("asked %q, %+v, %v", asked, sums, err)
	}
	if got := idsIn(t, d.out); !slices.Equal(got, ids) {
		t.Errorf("%q", got)
	}
}

// Of an input that was not read to its end, as the provider stopped the run, nobody knows
// the order: the file stays as it stands.
func TestInputOrderOfWhatWasNotRead(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var lines []string
			for n := range 5000 {
				lines = append(lines, ask(fmt.Sprint(n)))
			}
			d := newFixture(t, lines...)
			d.cfg.Reader.Limit, d.cfg.Concurrency, d.cfg.InputOrder = 3, 1, true
			job := d.open()
			_, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) { return good, nil })
			must.Do(t, errors.Join(err, job.Close()))
			slices.Reverse(lines)
			write(t, d.in, strings.Join(lines, "\n"))
			d.cfg.Reader.Limit = 0
			if stream {
				r, w := io.Pipe() // which says nothing more
				defer func() { _ = w.Close() }()
				go func() { _, _ = io.WriteString(w, lines[0]+"\n"+ask("0")+"\n"+ask("2")+"\n") }()
				d.cfg.Input = Stream("pipe", r)
			}
			job = d.open()
			sums, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
				return provider.Reply{}, &provider.Error{Kind: provider.QuotaExhausted, Status: 429}
			})
			if fault := job.Close(); !errors.Is(err, batch.ErrStopped) || sums.FilesErr != nil || !sums.Unordered || sums.Arranged || fault != nil {
				t.Errorf("stream %t: %+v, %v", stream, sums, fault)
			}
			if got := idsIn(t, d.out); !slices.Equal(got, []string{"0", "1", "2"}) {
				t.Errorf("%q", got)
			}
		})
	}
}

// Who abandons the run with its last call does not wait for the file to be written anew.
func TestInputOrderIsNotWaitedFor(t *testing.T) {
	d := newFixture(t, ask("b"))
	d.run()
	write(t, d.in, ask("a")+"\n"+ask("b"))
	d.cfg.InputOrder = true
	synctest.Test(t, func(t *testing.T) {
		ctx, abandon := context.WithCancel(t.Context())
		job := d.open()
		sums, _ := job.Run(ctx, func(context.Context, *Item) (provider.Reply, error) { abandon(); return good, nil })
		if err := job.Close(); err != nil || !sums.Unordered || sums.Arranged || sums.FilesErr != nil {
			t.Errorf("%+v, %v", sums, err)
		}
	})
}
