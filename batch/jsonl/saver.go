package jsonl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
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
	// commitBytes and commitLines are how much gathers while a commit runs. Beyond
	// either, Save waits: memory stays bounded however slow the disk is.
	commitBytes = 4 << 20
	commitLines = 4096
	// saveRoom is how many lines may be on their way to be gathered.
	saveRoom = 256
	// patience is how often a bundle lets others run before it is handed over. With 64
	// calls in flight on two busy processors, three times make 6 % fewer syncs, and
	// further ones not much less. It is bounded, so that no crowd keeps a line waiting.
	patience = 3
	// heldBytes is how much is kept for another try after a failed write: the results
	// of the calls that were in flight then, several thousand usual ones.
	heldBytes = 64 << 20
	// namedUnsaved is how many items a SaveError names; it counts the others.
	namedUnsaved = 10
)

// SaverConfig says how to save. The zero value is usable.
type SaverConfig struct {
	Durability Durability
	// Fault is told the first failure, at once and once, in the saver's goroutine:
	// what is answered from now on may not be kept. nil means nobody is.
	Fault func(error)
}

// Saver writes lines to a file and says when each is safe. Lines that come while a
// commit is under way gather and go out together in the next: one write and one
// sync for all, however many they are. Save may be called by many goroutines.
type Saver struct {
	cfg     SaverConfig
	lines   chan saving
	commits chan *bundle
	spare   chan *bundle // of the two, the one that is neither gathered nor committed
	over    chan struct{}
	keeper  keeper
}

// saving is one line on its way.
type saving struct {
	line Line
	done func(error)
}

// NewSaver takes w over and starts to save. Whoever calls it calls Close.
func NewSaver(w *Writer, cfg SaverConfig) *Saver {
	s := &Saver{
		cfg: cfg, lines: make(chan saving, saveRoom), commits: make(chan *bundle),
		spare: make(chan *bundle, 2), over: make(chan struct{}),
		keeper: keeper{w: w, cfg: cfg, sync: syncData},
	}
	s.spare <- new(bundle)
	s.spare <- new(bundle)
	go s.gather()
	go s.commit()
	return s
}

// Save hands over a line. done, unless nil, is called once, in the order of the
// calls of Save and in the saver's goroutine: with nil when the line is safe, whole,
// in the file; with an error when it never will be. It must not block, nor call the
// saver. Save waits only while the disk is thousands of lines behind.
func (s *Saver) Save(l Line, done func(error)) { s.lines <- saving{l, done} }

// Close waits until every line is safe, or known not to be, and closes the file.
// Lines that a full disk refused are tried once more: there may be room by now. The
// error is a *SaveError if a line was not saved. Save must not be called any more.
func (s *Saver) Close() error {
	close(s.lines)
	<-s.over
	return s.keeper.err
}

// gather collects lines while a commit runs. A nil channel is a closed door.
func (s *Saver) gather() {
	defer close(s.commits)
	b, open := <-s.spare, true
	for open || len(b.items) > 0 {
		in, out := s.lines, s.commits
		if b.full() || !open {
			in = nil
		}
		if len(b.items) == 0 || in != nil && s.more(b) {
			out = nil // more is at the door: take it along
		}
		select {
		case one, ok := <-in:
			if open = ok; ok {
				b.add(&one)
			}
		case out <- b:
			b = <-s.spare // there is one: who takes a bundle has put back the last
		}
	}
}

// more reports whether lines are at the door. If none are, it first lets run whoever
// may be about to bring one: where processors are busy a sync serves more lines then,
// and where they are not this returns at once and a single line waits for nobody.
func (s *Saver) more(b *bundle) bool {
	for len(s.lines) == 0 && b.yields < patience {
		b.yields++
		runtime.Gosched()
	}
	return len(s.lines) > 0
}

func (s *Saver) commit() {
	defer close(s.over)
	for b := range s.commits {
		s.keeper.keep(b)
		s.spare <- b
	}
	s.keeper.close()
}

// bundle is what one commit writes.
type bundle struct {
	buf    []byte
	items  []kept
	yields int // how often others were let run for its sake
}

// kept is one line of a bundle: where it ends in buf, and who wants to know.
type kept struct {
	end  int
	id   string
	done func(error)
}

func (b *bundle) add(s *saving) {
	b.buf = AppendLine(b.buf, &s.line)
	b.items = append(b.items, kept{len(b.buf), s.line.CustomID, s.done})
}

func (b *bundle) full() bool { return len(b.buf) >= commitBytes || len(b.items) >= commitLines }

// settle tells the first n lines how they ended and forgets them.
func (b *bundle) settle(n int, err error) {
	for i := range b.items[:n] {
		if done := b.items[i].done; done != nil {
			done(err)
		}
	}
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

// start is where line n begins in buf.
func (b *bundle) start(n int) int {
	if n == 0 {
		return 0
	}
	return b.items[n-1].end
}

// reset empties b. One huge line must not hold its memory until the end of the run.
func (b *bundle) reset() {
	clear(b.items)
	b.buf, b.items, b.yields = b.buf[:0], b.items[:0], 0
	if cap(b.buf) > 2*commitBytes {
		b.buf = nil
	}
}

// SaveError says that lines were not saved, and which.
type SaveError struct {
	File  string
	Lines int      // how many
	IDs   []string // of the first ten of them
	Err   error    // why: the first failure
}

// Error names the file, how many lines are missing and the first of them.
func (e *SaveError) Error() string {
	names := strings.Join(e.IDs, ", ")
	if more := e.Lines - len(e.IDs); more > 0 {
		names = fmt.Sprintf("%s and %d more", names, more)
	}
	return fmt.Sprintf("%v: %d results are not saved: %s", e.Err, e.Lines, names)
}

// Unwrap gives the first failure.
func (e *SaveError) Unwrap() error { return e.Err }

// ErrReplaced says that the file under the output's name is not, or not as, what
// was written.
var ErrReplaced = errors.New("it was deleted, replaced or changed by another program during the run: restore it if you can")

// keeper is the committing end of a Saver.
type keeper struct {
	w    *Writer
	cfg  SaverConfig
	sync func(*os.File) error

	ours  os.FileInfo // the file, as it was first seen: which one it is never changes
	made  bool        // the folder knows the file
	fault error       // the first failure: nothing is written after it but by close
	lost  bool        // the fault is one of which no second try recovers
	held  bundle      // what was not written, for another try
	err   error       // what Close says
}

// keep makes one bundle safe. Once there was a fault, it holds what comes.
func (k *keeper) keep(b *bundle) {
	if k.fault == nil {
		n, err := k.put(b)
		b.settle(n, nil)
		if err == nil {
			return
		}
		if k.fault = err; k.cfg.Fault != nil {
			k.cfg.Fault(err)
		}
	}
	k.hold(b)
}

// put writes and settles with the disk. It tells how many lines are safe.
func (k *keeper) put(b *bundle) (n int, err error) {
	n, err = k.w.writeLines(b)
	if err != nil {
		err = fmt.Errorf("jsonl: write %s: %w", k.w.name, bare(err))
	}
	if n == 0 {
		return 0, err
	}
	if fault := k.settle(); fault != nil {
		// Pages that could not be written may be dropped, and the next sync succeeds
		// all the same: after a failed one, nothing about the file is known.
		k.lost = true
		return 0, fmt.Errorf("jsonl: save %s: %w", k.w.name, bare(fault))
	}
	return n, err
}

// settle waits for the disk, as far as that was asked for, and looks whether the
// file is still the one that bears the name.
func (k *keeper) settle() error {
	if k.w.file == nil {
		return nil
	}
	if err := k.see(); err != nil || !k.ours.Mode().IsRegular() {
		return err
	}
	if k.cfg.Durability == Sync {
		if err := k.sync(k.w.file); err != nil {
			return err
		}
		if !k.made {
			syncFolder(k.w.name)
			k.made = true
		}
	}
	return k.w.stillThere(k.ours)
}

// see looks which file it is that is written to.
func (k *keeper) see() (err error) {
	if k.ours == nil {
		k.ours, err = k.w.file.Stat()
	}
	return err
}

// hold keeps what was not saved for close, as far as there is room.
func (k *keeper) hold(b *bundle) {
	if k.lost || len(k.held.buf)+len(b.buf) > heldBytes {
		k.giveUp(b)
		return
	}
	before := len(k.held.buf)
	k.held.buf = append(k.held.buf, b.buf...)
	for _, item := range b.items {
		item.end += before
		k.held.items = append(k.held.items, item)
	}
	b.reset()
}

// giveUp notes what is not saved, and says so to those who wait for it.
func (k *keeper) giveUp(b *bundle) {
	if len(b.items) == 0 {
		return
	}
	var unsaved *SaveError
	if !errors.As(k.err, &unsaved) {
		unsaved = &SaveError{File: k.w.name, Err: k.fault}
		k.err = unsaved
	}
	unsaved.Lines += len(b.items)
	for _, item := range b.items[:min(len(b.items), namedUnsaved-len(unsaved.IDs))] {
		unsaved.IDs = append(unsaved.IDs, clip(item.id))
	}
	b.settle(len(b.items), k.fault)
}

// close tries once more to write what is held, and closes the file.
func (k *keeper) close() {
	if len(k.held.items) > 0 && !k.lost && k.w.err == nil {
		n, _ := k.put(&k.held)
		k.held.settle(n, nil)
	}
	k.giveUp(&k.held)
	fault := k.finish()
	if k.fault == nil && fault != nil && k.cfg.Fault != nil {
		k.cfg.Fault(fault)
	}
	if k.err == nil {
		k.err = fault
	}
}

// finish looks at the file one last time: a run may have long written nothing.
func (k *keeper) finish() (err error) {
	if k.w.file != nil && !k.lost {
		if k.see() == nil && k.ours.Mode().IsRegular() {
			err = k.w.stillThere(k.ours)
		}
	}
	if err != nil {
		err = fmt.Errorf("jsonl: save %s: %w", k.w.name, err)
	}
	return errors.Join(err, k.w.leave())
}

// writeLines writes a bundle and tells how many of its lines are whole in the file.
// What a failed write has left of the next is cut off; where even that fails, no
// line may follow.
func (w *Writer) writeLines(b *bundle) (n int, err error) {
	if w.out == nil && !w.create() {
		return 0, w.err
	}
	written, err := w.out.Write(b.buf)
	if err == nil && written < len(b.buf) {
		err = io.ErrShortWrite
	}
	for n < len(b.items) && b.items[n].end <= written {
		n++
	}
	w.size += int64(b.start(n))
	w.total += n
	if err != nil && w.file != nil && written > b.start(n) {
		if torn := w.file.Truncate(w.size); torn != nil {
			w.err = torn
		}
	}
	return n, err
}

// stillThere compares what was written with what stands under the name now.
func (w *Writer) stillThere(ours os.FileInfo) error {
	named, err := os.Stat(w.name)
	if err != nil || !os.SameFile(named, ours) || named.Size() != w.size {
		return ErrReplaced
	}
	return nil
}

// leave closes the file without waiting for the disk.
func (w *Writer) leave() (err error) {
	if w.file != nil {
		if err = w.file.Close(); err != nil {
			err = fmt.Errorf("jsonl: close %s: %w", w.name, bare(err))
		}
	}
	w.file, w.out, w.open = nil, nil, nil
	return err
}
