package timeline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/observe"
)

// ErrNone says that there is no timeline. errors.Is finds it in the errors of Read.
var ErrNone = errors.New("there is no timeline")

// A View is the state of the latest run in a timeline.
type View struct {
	Progress *event.Progress     // how the run stood; nil: not written yet
	Line     []byte              // the same, as the file has it, without its line feed
	At       time.Time           // of the latest sample; zero: there is none
	Ended    bool                // the run's summary is there
	ExitCode *int                // in the summary; nil: none
	Stopped  []event.StoppedLane // likewise
}

// Reader follows a timeline, while a run writes it or afterwards. It does not block the
// writer. It belongs to one goroutine; the zero value with a Path is ready.
type Reader struct {
	Path string

	opened  os.FileInfo // the file that was read
	offset  int64       // up to here the file no longer changes
	settled tally       // the contents up to there
	now     tally       // the contents to the end
}

// tally sums up the latest run of a file, up to some line.
type tally struct {
	view    View
	samples []observe.Sample // of the latest runs, as many as a line of speeds shows
}

// keptSamples is the number of samples that a Reader remembers: a run's whole timeline.
const keptSamples = maxSamples

// Read reads what has changed, and says how the latest run stands. While the end of the file
// is being replaced it returns the earlier state. The errors are ErrNone, ErrNotOurs, and
// those of the file system.
func (r *Reader) Read() (View, error) {
	file, err := os.OpenFile(r.Path, os.O_RDONLY|disk.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return View{}, ErrNone
	}
	if err != nil {
		return View{}, disk.Bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return View{}, disk.Bare(err)
	}
	if !info.Mode().IsRegular() {
		return View{}, ErrNotOurs
	}
	if r.opened == nil || !os.SameFile(r.opened, info) || info.Size() < r.offset {
		*r = Reader{Path: r.Path} // another file, or a rewritten one
	}
	r.opened = info
	err = r.read(io.NewSectionReader(file, r.offset, info.Size()-r.offset))
	if errors.Is(err, errMoved) {
		*r = Reader{Path: r.Path, opened: info}
		err = r.read(io.NewSectionReader(file, 0, info.Size()))
	}
	if err != nil {
		return View{}, disk.Bare(err)
	}
	return r.now.view, nil
}

// errMoved says that the part already read is not there any more: a new file may have the
// number of one before it.
var errMoved = errors.New("what was read has moved")

// read continues from the latest offset. Nothing before the latest sample changes, nor does the place where that
// sample begins.
func (r *Reader) read(rest io.Reader) error {
	now, offset := r.settled, r.offset
	in := bufio.NewReaderSize(rest, 64<<10)
	for {
		line, whole, err := readLine(in)
		if err != nil {
			return err
		}
		if !whole {
			break
		}
		p := parse(line)
		switch {
		case offset == 0 && p.kind != start:
			return ErrNotOurs
		case offset > 0 && offset == r.offset && p.kind != sample && !isTorn(line, true):
			return errMoved
		case p.kind == sample:
			r.settled, r.offset = now, offset
		}
		now.add(&p, line)
		offset += int64(len(line)) + 1
	}
	if now.view.Progress == nil { // the progress is just being written
		now.view.Progress, now.view.Line = r.now.view.Progress, r.now.view.Line
	}
	r.now = now
	return nil
}

// add sums up one more line. It ignores kinds that it does not know.
func (t *tally) add(p *parsed, line []byte) {
	switch p.kind {
	case start:
		*t = tally{}
	case sample:
		t.samples = append(t.samples, *p.sample)
		t.samples = t.samples[max(0, len(t.samples)-keptSamples):]
		t.view.At = p.sample.At
	case summary:
		t.view.Ended, t.view.ExitCode, t.view.Stopped = true, p.exit, p.stopped
	case progress:
		t.view.Progress, t.view.Line = p.progress, bytes.TrimRight(line, " ")
	}
}

// Speeds returns those of the latest run, as [observe.Recorder.Speeds] has them.
func (r *Reader) Speeds(n int) (perSecond []float64, span time.Duration) {
	return observe.SpeedsOf(r.now.samples, n)
}

// Reasons why a file is not written to, and stays as it is; errors.Is finds them in the
// errors of Open.
var (
	ErrNotOurs = errors.New("headrace did not write this timeline, so it stays as it is; move it away, or choose another file with --timeline")
	ErrDamaged = errors.New("it stays as it is; move it away, or choose another file with --timeline")
	ErrInUse   = errors.New("another run writes to it: choose another file with --timeline")
)

// contents describes a file of ours.
type contents struct {
	sound   int64 // bytes of whole lines, up to where the next run continues: without the progress
	starts  int
	samples int
	span    int // seconds of a sample in it
	lines   int
}

// scan reads a file to its end, and describes its contents. All lines must be ours, except an end that a killed
// process left.
func scan(file io.Reader) (c contents, err error) {
	c.span = 1
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, whole, err := readLine(in)
		if err != nil {
			return c, err
		}
		var p parsed
		if whole {
			p = parse(line)
		}
		if c.lines == 0 {
			if err := checkBeginning(line, whole, p.kind); err != nil {
				return c, err
			}
		}
		if len(line) == 0 && !whole {
			return c, nil
		}
		if p.kind == unknown || p.kind == progress {
			return c, c.checkEnd(line, whole, p.kind, in)
		}
		c.add(&p, len(line)+1)
	}
}

// checkBeginning returns an error unless a file that begins with that line is ours. An empty file is.
func checkBeginning(line []byte, whole bool, k kind) error {
	switch {
	case len(line) == 0 && !whole, k == start:
		return nil
	case !bytes.HasPrefix(line, []byte(mark)):
		return ErrNotOurs
	}
	if _, err := parseHead(line); errors.Is(err, errOtherVersion) {
		return fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	return nil // its first line was not written to its end
}

// add counts one more line of so many bytes.
func (c *contents) add(p *parsed, bytes int) {
	c.lines++
	c.sound += int64(bytes)
	switch p.kind {
	case start:
		c.starts++
		c.span = max(c.span, p.head.span)
	case sample:
		c.samples++
	}
}

// checkEnd returns an error unless the rest of the file can be the end that a killed process left. That is a
// progress, or a torn line and at most one progress after it. A loss of power leaves zeros.
func (c *contents) checkEnd(line []byte, whole bool, k kind, in *bufio.Reader) error {
	damaged := fmt.Errorf("its line %d does not belong in a timeline: %w", c.lines+1, ErrDamaged)
	text := bytes.TrimRight(line, "\x00")
	if k == unknown && !isTorn(text, whole) {
		return damaged
	}
	behind, whole, err := readLine(in)
	if err == nil && k == unknown && whole && parse(behind).kind == progress {
		behind, whole, err = readLine(in)
	}
	for ; err == nil && !whole && len(behind) > 0; behind, whole, err = readLine(in) {
		if len(bytes.Trim(behind, "\x00")) > 0 {
			return damaged
		}
	}
	if err == nil && whole {
		return damaged
	}
	return err
}

// readLine reads a line without its feed; the caller may keep it. At the end of the file it returns the rest, which
// is not whole and may be empty. A line longer than any of ours comes in pieces that are not whole.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	for len(line) < maxLine {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], true, nil
		case errors.Is(err, io.EOF):
			return line, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
	return line, false, nil
}
