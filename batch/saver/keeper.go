package saver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/disk"
)

// keeper is the committing end of a Saver. It belongs to one goroutine.
type keeper struct {
	w    *writer
	cfg  Config
	disk disk.Disk

	fileInfo      os.FileInfo // the file as first seen: its identity never changes
	folderSynced  bool        // the folder entry of the file is synced
	fault         error       // the first failure: bundles that come after it are kept
	unrecoverable bool        // no second try can help against the fault
	unsynced      bundle      // written, and not yet known to be safe; without the text
	unwritten     bundle      // not written, kept for another try
	maxHeld       int         // maximum number of bytes kept
	roomReported  bool        // the lack of room was reported
	err           error       // the error of Close

	clock  clockwork.Clock
	timer  clockwork.Timer // of the next sync
	armed  bool            // the timer runs
	synced time.Time
}

func newKeeper(w *writer, cfg Config) keeper {
	clock := cfg.Clock
	if clock == nil {
		clock = clockwork.NewRealClock()
	}
	// The length does not matter: the timer is stopped before it can fire.
	timer := clock.NewTimer(syncEvery)
	timer.Stop()
	return keeper{w: w, cfg: cfg, disk: disk.Real(), maxHeld: unwrittenBytes, clock: clock, timer: timer}
}

// keep writes one bundle, and makes it safe when that is due. After a fault it holds the
// lines that come.
func (k *keeper) keep(b *bundle) {
	if k.fault == nil {
		err := k.write(b)
		if err != nil || k.due() {
			k.secure()
		}
		if err != nil && k.fault == nil {
			k.fail(err)
		}
		if k.fault == nil {
			return
		}
	}
	k.hold(b)
}

// write takes over those lines of a bundle that are whole in the file.
func (k *keeper) write(b *bundle) error {
	n, err := k.w.writeLines(b)
	k.unsynced.items = append(k.unsynced.items, b.items[:n]...)
	k.unsynced.hasWaiter = k.unsynced.hasWaiter || b.hasWaiter
	b.removeFirst(n)
	if n > 0 && k.cfg.Written != nil {
		k.cfg.Written(n)
	}
	if err == nil || k.w.out == nil {
		return err // the error of making a file says so itself
	}
	return fmt.Errorf("saver: write %s: %w", k.w.name, disk.Bare(err))
}

// due reports whether to sync now. If not, it makes sure that the timer fires when it is time.
func (k *keeper) due() bool {
	if k.cfg.Durability == OS || k.unsynced.hasWaiter || len(k.unsynced.items) >= syncLines {
		return true
	}
	wait := syncEvery - k.clock.Now().Sub(k.synced)
	if wait > 0 && !k.armed {
		k.timer.Reset(wait)
		k.armed = true
	}
	return wait <= 0
}

// tick handles the timer. It is level-triggered: a tick that was on its way when its timer
// was stopped finds that nothing is due.
func (k *keeper) tick() {
	k.armed = false
	if len(k.unsynced.items) > 0 && k.due() {
		k.secure()
	}
}

// secure syncs the file, and reports all lines written so far as saved or as lost.
func (k *keeper) secure() {
	if len(k.unsynced.items) == 0 {
		return
	}
	if k.armed {
		k.timer.Stop()
		k.armed = false
	}
	if err := k.syncFile(); err != nil {
		// Pages that could not be written may be dropped, and the next sync succeeds all
		// the same. After a failed sync, nothing about the file is known.
		k.unrecoverable = true
		k.fail(fmt.Errorf("saver: save %s: %w", k.w.name, disk.Bare(err)))
		k.reportUnsaved(&k.unsynced)
		return
	}
	k.unsynced.reportAll(nil)
}

// fail records the first fault and reports it.
func (k *keeper) fail(err error) {
	if k.fault != nil {
		return
	}
	if k.fault = err; k.cfg.Fault != nil {
		k.cfg.Fault(err)
	}
}

// syncFile waits for the disk, as far as Durability asks for it. It returns an error if the file no longer has its
// name.
func (k *keeper) syncFile() (err error) {
	if k.w.file == nil {
		return nil
	}
	if k.fileInfo == nil { // this is the file that is being written to
		if k.fileInfo, err = k.w.file.Stat(); err != nil {
			return err
		}
	}
	if !k.fileInfo.Mode().IsRegular() {
		return nil
	}
	if k.cfg.Durability == Sync {
		if err := k.disk.SyncData(k.w.file); err != nil {
			return err
		}
		k.synced = k.clock.Now()
		if !k.folderSynced {
			k.disk.SyncFolder(k.w.name)
			k.folderSynced = true
		}
	}
	return k.w.stillThere(k.fileInfo)
}

// hold keeps unsaved lines for another try, as far as there is room. Before it loses a
// line it makes such a try: the disk may have room again. Later lines never displace held
// ones.
func (k *keeper) hold(b *bundle) {
	if len(k.unwritten.buf)+len(b.buf) > k.maxHeld {
		k.retryHeld()
	}
	if k.unrecoverable {
		k.reportUnsaved(&k.unwritten) // these came first
		k.reportUnsaved(b)
		return
	}
	before, n := len(k.unwritten.buf), 0
	for ; n < len(b.items) && before+b.items[n].end <= k.maxHeld; n++ {
		item := b.items[n]
		item.end += before
		k.unwritten.items = append(k.unwritten.items, item)
	}
	k.unwritten.buf = append(k.unwritten.buf, b.buf[:b.start(n)]...)
	if b.removeFirst(n); len(b.items) == 0 {
		return
	}
	k.reportUnsaved(b)
	if !k.roomReported && k.cfg.Fault != nil {
		k.cfg.Fault(fmt.Errorf("saver: write %s: %w", k.w.name, ErrHeld))
	}
	k.roomReported = true
}

// retryHeld tries to write the lines that are held. Lines that it cannot write stay held.
func (k *keeper) retryHeld() {
	if len(k.unwritten.items) == 0 || k.unrecoverable || k.w.err != nil {
		return
	}
	_ = k.write(&k.unwritten) // the first fault was already reported
	k.secure()
}

// reportUnsaved records the lines as unsaved, and reports that to those who wait for them.
func (k *keeper) reportUnsaved(b *bundle) {
	if len(b.items) == 0 {
		return
	}
	var unsaved *Error
	if !errors.As(k.err, &unsaved) {
		unsaved = &Error{File: k.w.name, Err: k.fault}
		k.err = unsaved
	}
	unsaved.Lines += len(b.items)
	for _, item := range b.items[:min(len(b.items), namedUnsaved-len(unsaved.IDs))] {
		unsaved.IDs = append(unsaved.IDs, lines.Clip(item.id))
	}
	b.reportAll(k.fault)
}

// close makes the written lines safe, tries once more to write the held ones, and closes
// the file.
func (k *keeper) close() {
	k.secure()
	k.retryHeld()
	k.reportUnsaved(&k.unwritten)
	fault := k.lastCheck()
	if fault != nil {
		k.fail(fault)
	}
	k.err = cmp.Or(k.err, fault)
}

// lastCheck checks the file one last time and closes it, as this run may not have written for long. Lines of an
// earlier run count as saved too, and that run may have been killed before a sync.
func (k *keeper) lastCheck() (err error) {
	switch {
	case k.w.file == nil || k.unrecoverable:
	case !k.folderSynced:
		err = disk.Bare(k.syncFile())
	default:
		err = k.w.stillThere(k.fileInfo)
	}
	if err != nil {
		err = fmt.Errorf("saver: save %s: %w", k.w.name, err)
	}
	return errors.Join(err, k.w.close())
}

// writer writes whole lines behind a tail, or to a writer that is not a file of ours.
type writer struct {
	name string
	tail *journal.Tail // nil if out is not ours to open, sync and close
	out  io.Writer     // nil until the first line of a file that is made lazily
	file *os.File      // nil if out is not ours, or not there yet
	size int64         // bytes of whole lines in the file
	torn bool          // the last write ended within a line, and cannot be cut off
	err  error         // why no line may follow
}

func newWriter(tail *journal.Tail) *writer {
	w := &writer{name: tail.Name, tail: tail, size: tail.Size}
	if file := tail.File; file != nil {
		w.file, w.out = file, file
	}
	return w
}

// writeLines writes a bundle and returns how many of its lines are whole in the file. It
// cuts off the part of a line that a failed write has left; if even that fails, no line may
// follow. It cuts nothing off a foreign writer: a line feed ends the torn piece before the
// next line, so that the piece spoils only itself.
func (w *writer) writeLines(b *bundle) (whole int, err error) {
	if w.out == nil { // its first line makes the file
		if w.file, w.err = w.tail.Open(); w.err != nil {
			return 0, w.err
		}
		w.out = w.file
	}
	if w.torn {
		if _, err := w.out.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		w.torn = false
	}
	written, err := w.out.Write(b.buf)
	if err == nil && written < len(b.buf) {
		err = io.ErrShortWrite
	}
	for whole < len(b.items) && b.items[whole].end <= written {
		whole++
	}
	w.size += int64(b.start(whole))
	if w.torn = err != nil && written > b.start(whole); w.torn && w.file != nil {
		w.torn, w.err = false, w.file.Truncate(w.size)
	}
	return whole, err
}

// stillThere compares the written file with the one that has its name now.
func (w *writer) stillThere(ours os.FileInfo) error {
	named, err := os.Stat(w.name)
	if err != nil || !os.SameFile(named, ours) || named.Size() != w.size {
		return ErrReplaced
	}
	return nil
}

// close closes the file without waiting for the disk.
func (w *writer) close() (err error) {
	if w.file != nil {
		if err = w.file.Close(); err != nil {
			err = fmt.Errorf("saver: close %s: %w", w.name, disk.Bare(err))
		}
	}
	w.file, w.out = nil, nil
	return err
}
