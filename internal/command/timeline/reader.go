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

// ErrNone says that there is no timeline. errors.Is finds it in the errors of Look.
var ErrNone = errors.New("there is no timeline")

// A View is the state of the latest run in a timeline.
type View struct {
	Progress *event.Progress // how the run stood; nil: not written yet
	Line     []byte          // the same, as the file has it, without its line feed
	At       time.Time       // of the latest sample; zero: there is none
	Ended    bool            // the run's summary is there
	ExitCode *int            // in the summary; nil: none
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
const keptSamples = MaxSamples

// Look reads what has changed, and says how the latest run stands. While the end of the file
// is being replaced it returns the earlier state. The errors are ErrNone, ErrForeign, and
// those of the file system.
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

// read continues from the latest offset. What stands before the latest sample does not
// change, nor does the place where that sample begins.
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
	if now.view.Progress == nil { // the progress is just being written
		now.view.Progress, now.view.Line = r.now.view.Progress, r.now.view.Line
	}
	r.now = now
	return nil
}

// add takes one line. It ignores unknown ones.
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

// Speeds returns those of the latest run, as [observe.Recorder.Speeds] has them.
func (r *Reader) Speeds(n int) (perSecond []float64, span time.Duration) {
	return observe.SpeedsOf(r.now.samples, n)
}
