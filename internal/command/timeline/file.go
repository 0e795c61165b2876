package timeline

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/observe"
)

// Bounds of a file.
const (
	// maxSamples is the most samples that a file holds: as many as a report has room to
	// draw, several for each point of a wide screen.
	maxSamples = 3600
	// maxBytes is the greatest length of a file, its last lines included.
	maxBytes = 3 << 20
	// MostChanges is the number of changes that the file keeps of a run: its first.
	MostChanges = 100
	// maxStarts is the number of runs that the file keeps apart; older ones merge into one.
	maxStarts = 100
)

// fileMode lets only the owner read the failures.
const fileMode = 0o600

// file is a timeline that this process writes. It belongs to one goroutine.
type file struct {
	path string
	f    *os.File

	contents                 // the part that no longer changes
	growing  *observe.Sample // the latest sample, which still grows; nil: there is none
	end      []byte          // what follows that part: the growing sample, and the progress
}

// openFile opens the timeline at path, or makes it, and cuts off what a killed process left
// at its end. It does not follow a link.
func openFile(path string) (*file, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, ErrNotOurs
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|disk.NoFollow, fileMode)
	if err != nil {
		return nil, disk.Bare(err)
	}
	t := &file{path: path, f: f}
	if err := t.begin(); err != nil {
		return nil, errors.Join(disk.Bare(err), f.Close())
	}
	return t, nil
}

// begin takes the file for this process, and reads what it holds.
func (t *file) begin() (err error) {
	if errors.Is(disk.Own(t.f), disk.ErrOwned) {
		return ErrInUse
	}
	if !t.isStill() {
		return ErrNotOurs
	}
	if t.contents, err = scan(t.f); err != nil {
		return err
	}
	return t.f.Truncate(t.sound)
}

// isStill tells the open file from another that has taken its name since.
func (t *file) isStill() bool {
	ours, err := t.f.Stat()
	named, lerr := os.Lstat(t.path)
	return err == nil && lerr == nil && ours.Mode().IsRegular() && os.SameFile(ours, named)
}

// start writes the line that begins a run.
func (t *file) start(h head, news []byte) error {
	if t.starts >= maxStarts {
		if err := t.rewrite(t.span); err != nil {
			return err
		}
	}
	h.span = t.span
	t.starts++
	return t.append(append(h.line(), '\n'), news)
}

// add writes a sample, or merges it into the growing one, and the progress after it.
func (t *file) add(s observe.Sample, news []byte) error {
	if t.growing != nil {
		s = t.growing.Merge(s)
	}
	t.growing = &s
	if err := t.finish(news); err != nil {
		return err
	}
	if s.Span < float64(t.span)-halfSecond {
		return nil
	}
	return t.settle()
}

// halfSecond is half of the usual length of the spans in a sample. These are a little less or
// more than a second. With half a second as tolerance, a sample has as many as it should.
const halfSecond = 0.5

// settle ends the growth of the latest sample.
func (t *file) settle() error {
	if t.growing == nil {
		return nil
	}
	n := len(encodeSample(t.growing))
	t.sound, t.end, t.growing = t.sound+int64(n), t.end[n:], nil
	if t.samples++; t.samples < maxSamples {
		return nil
	}
	return t.rewrite(2 * t.span)
}

// append writes a line that stays.
func (t *file) append(line, news []byte) error {
	if err := t.put(line, t.growingLine(), news); err != nil {
		return err
	}
	t.sound, t.end = t.sound+int64(len(line)), t.end[len(line):]
	return nil
}

// finish rewrites the end of the file.
func (t *file) finish(news []byte) error { return t.put(nil, t.growingLine(), news) }

func (t *file) growingLine() []byte {
	if t.growing == nil {
		return nil
	}
	return encodeSample(t.growing)
}

// put writes lines over the end of the file, in one write that is no shorter than what it
// covers. A file that would become too long is rewritten first.
func (t *file) put(line, growing, news []byte) error {
	if t.sound+int64(len(line)+len(growing)+max(len(news), len(t.end))) > maxBytes {
		if err := t.rewrite(2 * t.span); err != nil {
			return err
		}
	}
	if short := len(t.end) - len(line) - len(growing) - len(news); short > 0 && len(news) > 0 { // spaces before its line feed make up the difference
		news = slices.Concat(news[:len(news)-1], bytes.Repeat([]byte{' '}, short), []byte{'\n'})
	}
	end := bytes.Join([][]byte{line, growing, news}, nil)
	_, err := t.f.WriteAt(end, t.sound)
	if err == nil && len(end) < len(t.end) { // there is no progress line to pad
		err = t.f.Truncate(t.sound + int64(len(end)))
	}
	if err != nil { // the end as it was needs no further room; if even that fails, the next run cuts it off
		_, again := t.f.WriteAt(t.end, t.sound)
		_ = errors.Join(again, t.f.Truncate(t.sound+int64(len(t.end))))
		return disk.Bare(err)
	}
	t.end = end
	return nil
}

func (t *file) close() error { return t.f.Close() }

// rewrite writes the file again, with samples of at least that many seconds. It is then at
// most two thirds full. The old file is closed before the new one takes its name: not every
// system renames an open file.
func (t *file) rewrite(span int) error {
	if !t.isStill() {
		return errors.New("another file has come in its place")
	}
	next := t.contents
	err := disk.Real().Replace(t.path, disk.Marked(mark), func(out *bufio.Writer) error {
		written, text, err := t.shorter(span)
		if err == nil {
			_, err = out.Write(append(text, t.end...))
		}
		next = written
		return errors.Join(err, t.f.Close())
	})
	if err == nil {
		t.contents = next
	}
	return errors.Join(disk.Bare(err), t.reopen())
}

// shorter returns the contents that stay, with samples of at least that span. They are at most
// two thirds of the samples and of the bytes that a file may hold. Half of the samples stay,
// and those that have no neighbour to merge with. Lines other than samples take at most a third
// of the bytes.
func (t *file) shorter(span int) (c contents, text []byte, err error) {
	for ; span <= maxSpan; span *= 2 {
		c, text, err = condense(io.NewSectionReader(t.f, 0, t.sound), t.contents, span)
		fewer := c.samples <= maxSamples*2/3 || span == t.span // at the same span the rewrite is to merge runs
		if err != nil || fewer && len(text) <= maxBytes*2/3 {
			return c, text, err
		}
	}
	return c, nil, errors.New("it cannot be made shorter")
}

// reopen opens the file under its name, if it was closed, and continues with it.
func (t *file) reopen() error {
	if _, err := t.f.Stat(); err == nil {
		return nil // the fault showed before the file was closed
	}
	f, err := os.OpenFile(t.path, os.O_RDWR|disk.NoFollow, fileMode)
	if err != nil {
		return disk.Bare(err)
	}
	if t.f = f; errors.Is(disk.Own(f), disk.ErrOwned) || !t.isStill() {
		return ErrInUse
	}
	return nil
}

// Runs before the latest ones keep only their summary, without their failures and changes.
const runsWithFailures = 10

// condenser rewrites what stays of a file. Neighbouring samples of one run merge until they
// have the span. Of a run's failures and summaries the latest line stays, and the oldest
// runs merge into one.
type condenser struct {
	span     int // of the new samples
	runs     int // in the file
	merging  int // of these, the ones that still merge with the first
	nth      int // the run that is being read
	first    head
	pending  *observe.Sample
	failures []byte
	summary  []byte
	changes  [][]byte
	body     bytes.Buffer // what follows the line that begins the first run
	contents
}

// room is the factor by which a sample may exceed the span: samples of a second are not
// exact to the millisecond.
const room = 1.25

// condense returns what stays of a file with those contents, with samples of that span.
func condense(file io.Reader, holds contents, span int) (contents, []byte, error) {
	c := &condenser{span: span, runs: holds.starts, merging: max(0, holds.starts-maxStarts+1)}
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, whole, err := readLine(in)
		if err == nil && whole {
			err = c.take(line)
		}
		if err != nil {
			return c.contents, nil, err
		}
		if !whole {
			text := c.all()
			return c.contents, text, nil
		}
	}
}

// take takes the next line of the file. The latest failures and summary wait until their run
// ends, as an earlier one of the same run is obsolete. A line of any other kind is an error.
func (c *condenser) take(line []byte) error {
	switch p := parse(line); p.kind {
	case start:
		c.begin(p.head)
	case sample:
		c.grow(p.sample)
	case failures:
		c.failures = line
	case summary:
		c.summary = line
	case changed:
		c.changes = append(c.changes, line)
	default:
		return errors.New("another program has changed it")
	}
	return nil
}

// begin begins a run, or merges it with the first.
func (c *condenser) begin(h head) {
	h.span = c.span
	switch {
	case c.nth == 0:
		c.first = h
	case c.merging > 0:
		c.merging--
		c.first.runs = min(maxRuns, c.first.runs+h.runs)
	default:
		c.endRun()
		c.line(h.line())
		c.starts++
	}
	c.nth++
}

// endRun writes the rest of a run.
func (c *condenser) endRun() {
	c.flush()
	if c.runs-c.nth < runsWithFailures {
		if c.failures != nil {
			c.line(c.failures)
		}
		for _, line := range c.changes[:min(len(c.changes), MostChanges)] {
			c.line(line)
		}
	}
	if c.summary != nil {
		c.line(c.summary)
	}
	c.failures, c.summary, c.changes = nil, nil, nil
}

// grow merges the next sample into the pending one, as far as the span allows.
func (c *condenser) grow(s *observe.Sample) {
	if c.pending != nil && c.pending.Span+s.Span <= float64(c.span)*room {
		merged := c.pending.Merge(*s)
		c.pending = &merged
		return
	}
	c.flush()
	c.pending = s
}

func (c *condenser) flush() {
	if c.pending == nil {
		return
	}
	c.line(bytes.TrimSuffix(encodeSample(c.pending), []byte("\n")))
	c.samples++
	c.pending = nil
}

func (c *condenser) line(line []byte) {
	c.body.Write(line)
	c.body.WriteByte('\n')
	c.lines++
}

// all returns the new file: only the end shows how many runs the first line stands for.
func (c *condenser) all() []byte {
	c.endRun()
	text := append(c.first.line(), '\n')
	text = append(text, c.body.Bytes()...)
	c.contents.span, c.starts, c.lines, c.sound = c.span, c.starts+1, c.lines+1, int64(len(text))
	return text
}

// PutAside gives an old timeline another name, as [journal.StartOver] does, and returns it;
// "" if there is nothing to keep. It leaves alone a file that is no timeline (ErrNotOurs),
// and one that a run writes (ErrInUse).
func PutAside(path string) (kept string, err error) {
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return "", nil
	}
	if err := mayMove(path); err != nil {
		return "", err
	}
	return journal.StartOver(path)
}

// mayMove refuses a file that is no timeline, and one that a run writes. It keeps the file from
// runs only until it returns.
func mayMove(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NoFollow, 0)
	if err != nil {
		return disk.Bare(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text := make([]byte, len(mark))
	if _, err := io.ReadFull(f, text); err != nil || string(text) != mark {
		return ErrNotOurs
	}
	if errors.Is(disk.Own(f), disk.ErrOwned) {
		return ErrInUse
	}
	return nil
}
