package saver

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/journal"
)

// Durability says when a line counts as saved. The zero value is the safe one.
type Durability uint8

const (
	// Sync waits until the disk has it: it survives the loss of power.
	Sync Durability = iota
	// OS waits until the operating system has it: it survives the end of this
	// process, whatever ends it, but not that of the machine.
	OS
)

const (
	// commitBytes and commitLines bound the lines that gather while a commit runs. Beyond
	// either, Save waits: memory stays bounded however slow the disk is.
	commitBytes = 4 << 20
	commitLines = 4096
	// queueLines is the number of lines that may be on their way to be gathered. If a field
	// of a line has more than longLine bytes, Save waits until the line is gathered. So
	// these lines take 16 MiB at most, plus one long line for each goroutine that saves.
	queueLines = 256
	longLine   = 64 << 10
	// maxYields is the number of times a bundle lets others run before it is handed over.
	// With 64 calls in flight on two busy processors, three times make 6 % fewer writes,
	// and more make hardly fewer. It is bounded, so that no crowd keeps a line waiting.
	maxYields = 3
	// unwrittenBytes bounds the lines kept for another try after a failed write: the results of
	// the calls then in flight. Clients read as much at once by default: 64 calls may have
	// 4 MiB each.
	unwrittenBytes = 256 << 20
	// namedUnsaved is the number of items that an Error names; it counts the others.
	namedUnsaved = 10
	// syncEvery and syncLines bound how long, and how many, lines without a waiter may be
	// written and not yet on the disk. A sync takes the processor for 0.2 ms. One for each
	// write would take a fifth of what a fast server leaves to do; one every 10 ms hardly
	// shows. A single line is synced at once if the last sync is older.
	syncEvery = 10 * time.Millisecond
	syncLines = 512
)

// Config says how to save. The zero value is usable.
type Config struct {
	Durability Durability
	// Written gets the number of further lines that the operating system has, in the
	// saver's goroutine: these survive the end of this process. It may be nil.
	Written func(lines int)
	// Clock says when a sync is due; nil is the real one.
	Clock clockwork.Clock
	// Fault gets the first failure, at once and once, in the saver's goroutine: from now on
	// answers may not be kept. If so much is held for another try that the next line is
	// lost, Fault gets that error too (ErrHeld). It may be nil.
	Fault func(error)
}

// Saver writes lines to a file and reports when each is safe. Lines that come while a
// commit is under way gather and go out together in the next: one write and one sync for
// all, however many they are. A line for which nobody waits shares its sync with those of
// the next 10 ms. Save may be called by many goroutines.
type Saver struct {
	cfg     Config
	lines   chan pendingLine
	commits chan *bundle
	spare   chan *bundle // the bundle of the two that is neither gathered nor committed
	over    chan struct{}
	keeper  keeper
}

// pendingLine is one line on its way.
type pendingLine struct {
	line     journal.Line
	done     func(error)
	gathered chan struct{} // closed when the line is gathered; nil: nobody waits for that
}

// New takes the tail over and starts to save behind it. The caller must call Close.
func New(tail *journal.Tail, cfg Config) *Saver { return start(newWriter(tail), cfg) }

// To saves to a writer that is not a file of ours, such as standard output: it is neither
// synced nor closed. name is for errors.
func To(out io.Writer, name string, cfg Config) *Saver {
	return start(&writer{name: name, out: out}, cfg)
}

// start starts a saver and its two goroutines. It makes two bundles: gather fills one while
// commit writes the other.
func start(w *writer, cfg Config) *Saver {
	s := &Saver{
		cfg: cfg, lines: make(chan pendingLine, queueLines), commits: make(chan *bundle),
		spare: make(chan *bundle, 2), over: make(chan struct{}),
		keeper: newKeeper(w, cfg),
	}
	s.spare <- new(bundle)
	s.spare <- new(bundle)
	go s.gather()
	go s.commit()
	return s
}

// Save hands over a line. done, unless nil, is called once, in the order of the calls of
// Save and in the saver's goroutine. It gets nil when the line is safe, whole, in the file,
// or an error when it never will be. It must not block, nor call the saver. Save waits only
// while the disk is thousands of lines behind, or megabytes of long ones. When it returns,
// a line over 64 KiB is held only as a copy in a bundle.
func (s *Saver) Save(l journal.Line, done func(error)) {
	pending := pendingLine{line: l, done: done}
	if !isLong(&l) {
		s.lines <- pending
		return
	}
	pending.gathered = make(chan struct{})
	s.lines <- pending
	<-pending.gathered
}

// isLong reports whether a field of a line has more than longLine bytes.
func isLong(l *journal.Line) bool {
	return len(l.Headrace.Metadata) > longLine || l.Response != nil && len(l.Response.Body) > longLine ||
		l.Headrace.Text != nil && len(*l.Headrace.Text) > longLine
}

// Close waits until every line is safe, or known not to be, and closes the file. It tries
// lines that a full disk refused once more: there may be room by now. The error is an
// *Error if a line was not saved. Save must not be called any more.
func (s *Saver) Close() error {
	close(s.lines)
	<-s.over
	return s.keeper.err
}

// gather collects lines while a commit runs. A nil channel never proceeds.
func (s *Saver) gather() {
	defer close(s.commits)
	b, open := <-s.spare, true
	for open || len(b.items) > 0 {
		in, out := s.lines, s.commits
		if b.full() || !open {
			in = nil
		}
		if len(b.items) == 0 || in != nil && s.moreReady(b) {
			out = nil // more lines are ready: take them along
		}
		select {
		case pending, ok := <-in:
			if open = ok; ok {
				b.add(&pending)
			}
			if pending.gathered != nil {
				close(pending.gathered)
			}
		case out <- b:
			b = <-s.spare // there is one: commit puts a bundle back before it takes the next
		}
	}
}

// moreReady reports whether more lines are ready. If none are, it first lets goroutines run that may be about to
// bring one. On busy processors a write then takes more lines. On idle ones moreReady returns at once, and a single
// line waits for nobody.
func (s *Saver) moreReady(b *bundle) bool {
	for len(s.lines) == 0 && b.yields < maxYields {
		b.yields++
		runtime.Gosched()
	}
	return len(s.lines) > 0
}

// commit writes each bundle and gives it back empty. Meanwhile it syncs when the timer says so.
// After the last bundle it settles what is still open, and lets Close return.
func (s *Saver) commit() {
	defer close(s.over)
	for open := true; open; {
		select {
		case b, ok := <-s.commits:
			if open = ok; ok {
				s.keeper.keep(b)
				s.spare <- b
			}
		case <-s.keeper.timer.Chan():
			s.keeper.tick()
		}
	}
	s.keeper.close()
}

// bundle holds the lines of one commit.
type bundle struct {
	buf       []byte
	items     []bundleLine
	hasWaiter bool // somebody waits for one of its lines to be safe
	yields    int  // how often it let others run
}

// bundleLine is one line of a bundle: where it ends in buf, and whom to notify.
type bundleLine struct {
	end  int
	id   string
	done func(error)
}

// add appends a line to the bundle.
func (b *bundle) add(s *pendingLine) {
	b.buf = journal.AppendLine(b.buf, &s.line)
	b.items = append(b.items, bundleLine{len(b.buf), s.line.CustomID, s.done})
	b.hasWaiter = b.hasWaiter || s.done != nil
}

func (b *bundle) full() bool { return len(b.buf) >= commitBytes || len(b.items) >= commitLines }

// reportAll reports to all lines how they ended, and empties the bundle.
func (b *bundle) reportAll(err error) {
	for i := range b.items {
		if done := b.items[i].done; done != nil {
			done(err)
		}
	}
	b.reset()
}

// removeFirst removes the first n lines, which belong to others now.
func (b *bundle) removeFirst(n int) {
	if n == len(b.items) {
		b.reset()
		return
	}
	cut := b.start(n)
	b.buf = append(b.buf[:0], b.buf[cut:]...)
	b.items = append(b.items[:0], b.items[n:]...)
	for i := range b.items {
		b.items[i].end -= cut
	}
}

// start returns where line n begins in buf.
func (b *bundle) start(n int) int {
	if n == 0 {
		return 0
	}
	return b.items[n-1].end
}

// reset empties the bundle. One huge line must not hold its memory until the end of the run.
func (b *bundle) reset() {
	clear(b.items)
	b.buf, b.items, b.yields, b.hasWaiter = b.buf[:0], b.items[:0], 0, false
	if cap(b.buf) > 2*commitBytes {
		b.buf = nil
	}
}

// Error says that lines were not saved, and which.
type Error struct {
	File  string
	Lines int      // how many
	IDs   []string // of the first ten of them
	Err   error    // why: the first failure
}

// Error names the file, the number of missing lines and the first of them.
func (e *Error) Error() string {
	names := strings.Join(e.IDs, ", ")
	if more := e.Lines - len(e.IDs); more > 0 {
		names = fmt.Sprintf("%s and %d more", names, more)
	}
	are := "results are"
	if e.Lines == 1 {
		are = "result is"
	}
	return fmt.Sprintf("%v: %d %s not saved: %s", e.Err, e.Lines, are, names)
}

// Unwrap returns the first failure.
func (e *Error) Unwrap() error { return e.Err }

// ErrHeld says that the disk is full and no further line can be held for another try.
var ErrHeld = fmt.Errorf("the disk is full, and %d MiB of results wait for room: no more can be kept", unwrittenBytes>>20)

// ErrReplaced says that the file under the output's name is not the one that was written,
// or was changed.
var ErrReplaced = errors.New("it was deleted, replaced or changed by another program during the run: restore it if you can")
