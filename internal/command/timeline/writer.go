package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/observe"
)

const (
	// sampleRoom is the number of samples that may wait for the disk. Samples that come
	// while it is full merge into one, which waits for the next: only their moments are
	// lost.
	sampleRoom = 64
	// changeRoom is the number of changes that may wait likewise; further ones are not written. People
	// make a few a minute.
	changeRoom = 16
	// failuresEvery is the time between two lines of failures.
	failuresEvery = time.Minute
	// closeWait bounds how long the end of a run waits for a disk that hangs.
	closeWait = 5 * time.Second
)

// Config describes a timeline. Path is needed; a nil function knows nothing.
type Config struct {
	Path string
	At   time.Time // when the run began
	// Start begins the run: it marshals to an object that begins with "event":"start". With nil
	// the timeline only says when the run began.
	Start any
	// Progress says how the run stands, once a second and at the end; nil: that is not known.
	// Failures says what failed so far, the most frequent first. The writer's goroutine calls
	// both. Open calls Progress, too, before that goroutine begins.
	Progress func() *event.Progress
	Failures func() []observe.Failure
	// Notice gets the reason, once, if the timeline has ended before the run.
	Notice func(string)
}

// Writer writes the timeline of a run. A nil one writes nothing.
type Writer struct {
	cfg  Config
	file *file

	samples chan observe.Sample
	changes chan event.Changed
	merged  *observe.Sample // samples without room, merged; only for the caller of Sample
	summary any             // the argument of Close; read it once samples is closed
	ended   chan struct{}
	wait    time.Duration // closeWait

	changed      int       // lines about changes
	at           time.Time // of the latest sample
	failuresAt   time.Time // when the failures were last written
	lastFailures string    // the failures written then

	saying    sync.Mutex // held during Notice
	abandoned bool       // Close no longer waits: there must be no Notice any more
}

// Open begins the timeline of a run, or goes on with that of an earlier one. It makes a
// missing file, but no folder. The errors are ErrNotOurs, ErrDamaged and ErrInUse, where the
// file is left as it is, and those of the file system. The caller closes the Writer.
func Open(cfg Config) (*Writer, error) {
	h, err := newHead(cfg.Start, event.Stamp(cfg.At), 1)
	if err != nil {
		return nil, err
	}
	t, err := openFile(cfg.Path)
	if err != nil {
		return nil, err
	}
	w := &Writer{cfg: cfg, file: t, samples: make(chan observe.Sample, sampleRoom), changes: make(chan event.Changed, changeRoom), ended: make(chan struct{}), wait: closeWait, at: cfg.At, failuresAt: cfg.At}
	if err := t.start(h, w.progressLine()); err != nil {
		return nil, errors.Join(err, t.close())
	}
	go w.run()
	return w, nil
}

// Sample adds a second to the timeline. It never waits: a second without room is merged with
// the next. One goroutine at a time may call it.
func (w *Writer) Sample(s observe.Sample) {
	if w == nil {
		return
	}
	if w.merged != nil {
		s = w.merged.Merge(s)
	}
	w.merged = nil
	select {
	case w.samples <- s:
	default:
		w.merged = &s
	}
}

// Changed adds what a person changed of the run. It never waits.
func (w *Writer) Changed(c event.Changed) {
	if w == nil {
		return
	}
	select {
	case w.changes <- c:
	default:
	}
}

// Close writes the outcome of the run. Summary marshals to an object that begins with
// "event":"summary"; nil writes nothing. Close waits until all is written, but at most five
// seconds for a disk that hangs. There must be no Sample after it.
func (w *Writer) Close(summary any) {
	if w == nil {
		return
	}
	hangs := make(chan struct{})
	timer := time.AfterFunc(w.wait, func() { close(hangs) })
	defer timer.Stop()
	w.summary = summary
	if w.merged != nil {
		select {
		case w.samples <- *w.merged:
		case <-hangs:
		}
	}
	close(w.samples)
	select {
	case <-w.ended:
	case <-hangs:
		w.notice(fmt.Sprintf("%s is not up to date: its disk has not answered for %v", w.cfg.Path, w.wait))
		w.saying.Lock()
		w.abandoned = true
		w.saying.Unlock()
	}
}

func (w *Writer) notice(text string) {
	w.saying.Lock()
	defer w.saying.Unlock()
	if w.cfg.Notice != nil && !w.abandoned {
		w.cfg.Notice(text)
	}
}

// run writes what arrives, until samples is closed. After a failed write it only drains the channels.
func (w *Writer) run() {
	defer close(w.ended)
	defer func() { _ = w.file.close() }() // a loss of the last lines is acceptable
	var err error
	for more := true; more; {
		var next error
		select {
		case s, is := <-w.samples:
			if more = is; is && err == nil {
				next = w.add(s)
			}
		case c := <-w.changes:
			if err == nil {
				next = w.writeChange(c)
			}
		}
		w.noticeEnded(next)
		err = cmp.Or(err, next)
	}
	for err == nil && len(w.changes) > 0 {
		err = w.writeChange(<-w.changes)
		w.noticeEnded(err)
	}
	if err == nil {
		w.noticeEnded(w.finish())
	}
}

// noticeEnded shows that an error has ended the timeline.
func (w *Writer) noticeEnded(err error) {
	if err != nil {
		w.notice(fmt.Sprintf("%s is no longer written: %v; only the timeline is lost", w.cfg.Path, err))
	}
}

// add writes a sample, and now and then the failures.
func (w *Writer) add(s observe.Sample) error {
	w.at = s.At
	if err := w.file.add(s, w.progressLine()); err != nil {
		return err
	}
	if s.At.Sub(w.failuresAt) < failuresEvery {
		return nil
	}
	w.failuresAt = s.At
	return w.writeFailures()
}

// writeChange writes a line about a change. It leaves out changes beyond MostChanges, as a script may make very many.
func (w *Writer) writeChange(c event.Changed) error {
	line, err := json.Marshal(c)
	if w.changed++; err != nil || len(line) > maxChanged || w.changed > MostChanges {
		return nil //nolint:nilerr // text cannot fail
	}
	return w.file.append(append(printable.JSON(line), '\n'), w.progressLine())
}

// writeFailures writes the failures, if they have changed.
func (w *Writer) writeFailures() error {
	if w.cfg.Failures == nil {
		return nil
	}
	list := w.cfg.Failures()
	failed := string(encodeFailures(list, time.Time{}))
	if len(list) == 0 || failed == w.lastFailures {
		return nil
	}
	w.lastFailures = failed
	return w.file.append(encodeFailures(list, w.at), w.progressLine())
}

// finish writes the last lines of the run.
func (w *Writer) finish() error {
	if err := w.writeFailures(); err != nil {
		return err
	}
	if err := w.file.settleSample(); err != nil {
		return err
	}
	line, err := json.Marshal(w.summary)
	if err != nil || w.summary == nil || len(line) > maxSummary || !bytes.HasPrefix(line, []byte(beginnings[summary])) {
		return w.file.rewriteTail(w.progressLine())
	}
	return w.file.append(append(printable.JSON(line), '\n'), w.progressLine())
}

// progressLine returns the line that holds the run's progress; nil if that is not known, or does not make a line.
func (w *Writer) progressLine() []byte {
	if w.cfg.Progress == nil {
		return nil
	}
	p := w.cfg.Progress()
	if p == nil {
		return nil
	}
	line, err := json.Marshal(p)
	if err != nil || len(line) > maxProgress || !bytes.HasPrefix(line, []byte(beginnings[progress])) {
		return nil
	}
	return append(printable.JSON(line), '\n')
}
