package timeline

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/observe"
)

// ErrNone says that there is no timeline. errors.Is finds it in what Look returns.
var ErrNone = errors.New("there is no timeline")

// A View is what a timeline says of the latest run in it.
type View struct {
	Progress *event.Progress // how it stood; nil: that was not written yet
	Line     []byte          // the same, as it is in the file, without its line feed
	At       time.Time       // of the latest sample; zero: there is none
	Ended    bool            // its summary is there
	ExitCode *int            // that the summary names; nil: none
}

// Reader follows a timeline, while a run writes it or after it. It keeps nobody from
// writing. It belongs to one goroutine; the zero value but for Path is ready.
type Reader struct {
	Path string

	opened  os.FileInfo // the file that was read
	offset  int64       // up to where it stays as it is
	settled tally       // what it holds up to there
	now     tally       // and to its end
}

// tally is what a file holds of its latest run, up to some line.
type tally struct {
	view    View
	samples []observe.Sample // of the latest runs, as many as a line of speeds shows
}

// keptSamples is how many a Reader remembers: a run's whole timeline.
const keptSamples = MaxSamples

// Look reads what has changed, and says how the latest run stands. Of a file that is being
// written over it says what it held before. The errors are ErrNone, ErrForeign, and those
// of the file system.
func (r *Reader) Look() (View, error) {
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
		return View{}, ErrForeign
	}
	if r.opened == nil || !os.SameFile(r.opened, info) || info.Size() < r.offset {
		*r = Reader{Path: r.Path} // another file, or one written anew
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

// errMoved says that what was read is not there any more: a file written anew may bear the
// number of one before it.
var errMoved = errors.New("what was read has moved")

// read reads on. What stands before the latest sample stays as it is, and so does where
// that begins.
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
			return ErrForeign
		case offset > 0 && offset == r.offset && p.kind != sample && !isTorn(line, true):
			return errMoved
		case p.kind == sample:
			r.settled, r.offset = now, offset
		}
		now.add(&p, line)
		offset += int64(len(line)) + 1
	}
	if now.view.Progress == nil { // it is just being written
		now.view.Progress, now.view.Line = r.now.view.Progress, r.now.view.Line
	}
	r.now = now
	return nil
}

// add takes one line. What is not known is left out.
func (t *tally) add(p *parsed, line []byte) {
	switch p.kind {
	case start:
		*t = tally{}
	case sample:
		t.samples = append(t.samples, *p.sample)
		t.samples = t.samples[max(0, len(t.samples)-keptSamples):]
		t.view.At = p.sample.At
	case summary:
		t.view.Ended, t.view.ExitCode = true, p.exit
	case progress:
		t.view.Progress, t.view.Line = p.progress, bytes.TrimRight(line, " ")
	}
}

// Speeds are those of the latest run, as [observe.Recorder.Speeds] has them.
func (r *Reader) Speeds(n int) (perSecond []float64, span time.Duration) {
	return observe.SpeedsOf(r.now.samples, n)
}
