package promptfile

import (
	"context"
	"errors"
	"syscall"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/saver"
)

// sink takes result lines. Each of the two files has a saver, which commits together the
// lines that come while the disk works.
type sink struct {
	results, errors *saver.Saver
	unsaved         int    // lines that could not be kept; to be read after close
	turns           *turns // nil if results stand in the order in which they come

	// places has room for as many calls as may be in flight. A call takes a place before it is
	// made, and leaves it when its answer is written. Until then it counts as in flight;
	// the wait for a place is not part of the call's time. So a killed process never loses
	// more than it was allowed to have in flight, and a slow disk slows the calls down. The
	// saver bounds what a loss of power takes in addition: lines written and not synced,
	// 511 of them and those of one write. The job makes it, and widens it.
	//
	// The maker of the calls bounds the bytes: an answer's Done gives its room back.
	places  chan struct{}
	faulted chan struct{} // closed by the first failure: nothing waits for room any more
}

// newSink takes the files over. It calls fault with the first failure of each.
func (j *Job) newSink(fault func(error)) *sink {
	s := &sink{places: j.places, faulted: make(chan struct{})}
	firstFault := make(chan struct{}, 1)
	firstFault <- struct{}{}
	cfg := saver.Config{Durability: j.cfg.Durability, Fault: func(err error) {
		select {
		case <-firstFault:
			close(s.faulted)
		default: // of the other file
		}
		fault(err)
	}}
	if j.cfg.InputOrder {
		s.turns = newTurns(j.cfg.folder(), s.put, fault)
	}
	written := j.cfg.Watch.Written
	if written == nil {
		written = func(int) {}
	}
	cfg.Written = written
	s.errors = saver.New(j.files.errors, cfg)
	cfg.Written = func(lines int) {
		s.releasePlaces(lines)
		written(lines)
	}
	s.results = j.saver(cfg)
	j.files = nil // they are the savers'
	return s
}

// takeLine takes the line of the item with that index, nil if the item was not run.
func (s *sink) takeLine(index int, l *journal.Line) {
	if s.turns == nil {
		if l != nil {
			s.put(*l)
		}
		return
	}
	if l != nil && l.Error != nil {
		s.put(*l)
		l = nil
	}
	s.turns.accept(index, l)
}

// put hands over one line, of a failed item or of a result. Many goroutines may call it.
func (s *sink) put(l journal.Line) {
	if l.Error != nil {
		s.errors.Save(l, nil)
		return
	}
	s.results.Save(l, nil)
}

// acquirePlace waits until there is a place for one more call. If answers wait for their turn it asks for none: the
// answer whose turn it is could not come in.
func (s *sink) acquirePlace(ctx context.Context) {
	if s.turns != nil {
		return
	}
	select { // there is room nearly always, and to ask for that alone is cheap
	case s.places <- struct{}{}:
		return
	default:
	}
	select {
	case s.places <- struct{}{}:
	case <-s.faulted:
	case <-ctx.Done():
	}
}

// releasePlaces gives places back. After a fault an answer may have come in without one.
func (s *sink) releasePlaces(places int) {
	for range places {
		select {
		case <-s.places:
		default:
		}
	}
}

// close waits until everything is saved, or known not to be.
func (s *sink) close() error {
	var faults []error
	if s.turns != nil {
		faults = append(faults, s.turns.close())
		s.unsaved = s.turns.lost
	}
	faults = append(faults, s.results.Close(), s.errors.Close())
	for _, err := range faults {
		var unsaved *saver.Error
		if errors.As(err, &unsaved) {
			s.unsaved += unsaved.Lines
		}
	}
	return errors.Join(faults...)
}

// DiskFull reports whether err means a full disk, which may have room again, and not a
// broken one.
func DiskFull(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}
