package promptfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
)

// intake is the input as a run takes it. Only the run's reader writes to it; others may
// read it when the run is over.
type intake struct {
	*Job
	ctx            context.Context
	drain          <-chan struct{}
	halted         chan struct{}      // closed when the run no longer waits for a stream
	putBad         func(journal.Line) // takes the lines for bad lines
	done           int                // items with a result of an earlier run
	failed         int                // items that failed for good in an earlier run
	asked          int                // items that this run asks
	unsampled      int                // items that it leaves to another run, as they are not in its sample
	skipped        int                // bad lines that this run has put into the errors file
	untranslatable int                // untranslatable lines, likewise
	renamed        int                // items whose id was taken
	err            error              // why it ended early
	digest         prompts.Digest     // of a file, as far as it was read
	left           bool               // a stream was left before its end
	whole          bool               // the input was read to its end
	order          *journal.Order     // of its items; nil if not needed
}

// items yields the items that are left to do.
func (in *intake) items() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		if in.cfg.Watch.Began != nil {
			in.cfg.Watch.Began()
		}
		for req, err := range in.lines() {
			if err != nil && !in.skip(err) {
				in.endInput(err)
				return
			}
			if err != nil {
				continue
			}
			if it := in.itemOf(req); it != nil && !yield(it) {
				return
			}
		}
		in.whole = !in.left
	}
}

// itemOf returns the item of a request; nil if an earlier run has ended it, or it is not in the sample.
func (in *intake) itemOf(req prompts.Request) *Item {
	if in.order != nil {
		in.order.Add(req.Key)
	}
	switch in.past.stateOf(req.Key) {
	case endedWell:
		in.done++
		return nil
	case endedBadly:
		in.failed++
		return nil
	}
	if !in.sampled() {
		in.unsampled++
		return nil
	}
	in.asked++
	was := req.ID
	req.ID = in.past.freeID(was)
	it := in.maker.Item(req)
	if it.ID != was {
		in.renamed++ // the result of another question has its old id
		if in.cfg.Watch.Renamed != nil {
			in.cfg.Watch.Renamed(&it.Request, was)
		}
	}
	return it
}

// sampled reports whether the next item that is left to do is in the sample. Each stretch of the
// input has one, in its middle.
func (in *intake) sampled() bool {
	samples, left := in.cfg.Sample, in.plan.Left()
	if samples == 0 || samples >= left || in.cfg.Input.Stream {
		return true
	}
	position := in.asked + in.unsampled
	return (position*samples+left/2)/left < ((position+1)*samples+left/2)/left
}

// skip puts a bad line into the errors file, if such lines are skipped. It reports whether
// it did.
func (in *intake) skip(err error) bool {
	var bad *prompts.LineError
	if !errors.As(err, &bad) || !in.cfg.skips(bad) {
		return false
	}
	if in.past.stateOf(bad.Key()) == endedBadly {
		in.failed++
		return true
	}
	if errors.Is(bad, prompts.ErrUntranslatable) {
		in.untranslatable++
	} else {
		in.skipped++
	}
	if in.cfg.Watch.Skipped != nil {
		in.cfg.Watch.Skipped(bad)
	}
	in.putBad(in.maker.BadLine(bad))
	return true
}

// endInput records why the input ends early. Items before it are still run. The check of a file lets no line pass
// that ends a run, so such a line has come since.
func (in *intake) endInput(err error) {
	if _, bad := errors.AsType[*prompts.LineError](err); bad && !in.cfg.Input.Stream {
		err = fmt.Errorf("%w (%w)", err, ErrChanged)
	}
	in.err = err
	if in.cfg.Watch.Broke != nil {
		in.cfg.Watch.Broke(err)
	}
}

// lines reads a file directly, and a stream so that the run can leave it.
func (in *intake) lines() iter.Seq2[prompts.Request, error] {
	if in.cfg.Input.Stream {
		return in.stream
	}
	return in.file
}

// file yields the lines of a file, and an error if it cannot be opened. It keeps the digest of
// what it read, which must equal that of the check.
func (in *intake) file(yield func(prompts.Request, error) bool) {
	cfg := in.cfg.reader()
	cfg.Takes = in.takesAgain()
	err := in.cfg.Input.Read(cfg, func(file io.Reader, cfg prompts.Config) error {
		reader := prompts.NewReader(file, cfg)
		reader.All()(yield)
		in.digest = reader.Digest()
		return nil
	})
	if err != nil {
		yield(prompts.Request{}, err)
	}
}

// stream reads an input that can be read only once, in a goroutine of its own. It yields the
// lines until the input ends or the run must take no more. Nothing ends a stalled read from
// a terminal or a pipe. So a run that is over leaves that goroutine behind until the process
// ends.
func (in *intake) stream(yield func(prompts.Request, error) bool) {
	type line struct {
		req prompts.Request
		err error
	}
	lines, left := make(chan line), make(chan struct{})
	defer close(left) // no lines are taken any more
	give := func(req prompts.Request, err error) bool {
		select {
		case lines <- line{req, err}:
			return true
		case <-left:
			return false
		}
	}
	go func() {
		defer close(lines)
		cfg := in.cfg.reader()
		cfg.Takes = in.takes()
		err := in.cfg.Input.Read(cfg, func(file io.Reader, cfg prompts.Config) error {
			prompts.NewReader(file, cfg).All()(give)
			return nil
		})
		if err != nil {
			give(prompts.Request{}, err)
		}
	}()
	for {
		select {
		case l, ok := <-lines:
			if !ok || !yield(l.req, l.err) {
				return
			}
			continue
		case <-in.halted:
		case <-in.drain:
		case <-in.ctx.Done():
		}
		in.left = true
		return
	}
}
