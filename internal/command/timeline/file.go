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
	tail     []byte          // what follows that part: the growing sample, and the progress
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
	if err := t.takeOver(); err != nil {
		return nil, errors.Join(disk.Bare(err), f.Close())
	}
	return t, nil
}

// takeOver owns the file for this process, checks its contents, and cuts off what a killed process left.
func (t *file) takeOver() (err error) {
	if errors.Is(disk.Own(t.f), disk.ErrOwned) {
		return ErrInUse
	}
	if !t.isSameFile() {
		return ErrNotOurs
	}
	if t.contents, err = scan(t.f); err != nil {
		return err
	}
	return t.f.Truncate(t.sound)
}

// isSameFile reports whether the open file still has its name.
func (t *file) isSameFile() bool {
	ours, err := t.f.Stat()
	named, lerr := os.Lstat(t.path)
	return err == nil && lerr == nil && ours.Mode().IsRegular() && os.SameFile(ours, named)
}

// start writes the line that begins a run. It first merges old runs if the file has too many.
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
	if err := t.rewriteTail(news); err != nil {
		return err
	}
	if s.Span < float64(t.span)-halfSecond {
		return nil
	}
	return t.settleSample()
}

// halfSecond is half of the usual length of the spans in a sample. These are a little less or
// more than a second. With half a second as tolerance, a sample has as many as it should.
const halfSecond = 0.5

// settleSample ends the growth of the latest sample.
func (t *file) settleSample() error {
	if t.growing == nil {
		return nil
	}
	n := len(encodeSample(t.growing))
	t.sound, t.tail, t.growing = t.sound+int64(n), t.tail[n:], nil
	if t.samples++; t.samples < maxSamples {
		return nil
	}
	return t.rewrite(2 * t.span)
}

// append writes a line that stays.
func (t *file) append(line, news []byte) error {
	if err := t.writeTail(line, t.growingLine(), news); err != nil {
		return err
	}
	t.sound, t.tail = t.sound+int64(len(line)), t.tail[len(line):]
	return nil
}

// rewriteTail rewrites the end of the file.
func (t *file) rewriteTail(news []byte) error { return t.writeTail(nil, t.growingLine(), news) }

func (t *file) growingLine() []byte {
	if t.growing == nil {
		return nil
	}
	return encodeSample(t.growing)
}

// writeTail writes lines over the end of the file, in one write that is no shorter than what it covers. It rewrites a
// file first that would become too long.
func (t *file) writeTail(line, growing, news []byte) error {
	if t.sound+int64(len(line)+len(growing)+max(len(news), len(t.tail))) > maxBytes {
		if err := t.rewrite(2 * t.span); err != nil {
			return err
		}
	}
	if short := len(t.tail) - len(line) - len(growing) - len(news); short > 0 && len(news) > 0 { // spaces before its line feed make up the difference
		news = slices.Concat(news[:len(news)-1], bytes.Repeat([]byte{' '}, short), []byte{'\n'})
	}
	end := bytes.Join([][]byte{line, growing, news}, nil)
	_, err := t.f.WriteAt(end, t.sound)
	if err == nil && len(end) < len(t.tail) { // there is no progress line to pad
		err = t.f.Truncate(t.sound + int64(len(end)))
	}
	if err != nil { // the end as it was needs no further room; if even that fails, the next run cuts it off
		_, again := t.f.WriteAt(t.tail, t.sound)
		_ = errors.Join(again, t.f.Truncate(t.sound+int64(len(t.tail))))
		return disk.Bare(err)
	}
	t.tail = end
	return nil
}

func (t *file) close() error { return t.f.Close() }

// rewrite writes the file again, with samples of at least that many seconds. It is then at
// most two thirds full. The old file is closed before the new one takes its name: not every
// system renames an open file.
func (t *file) rewrite(span int) error {
	if !t.isSameFile() {
		return errors.New("another file has come in its place")
	}
	next := t.contents
	err := disk.Real().Replace(t.path, disk.Marked(mark), func(out *bufio.Writer) error {
		written, text, err := t.condensed(span)
		if err == nil {
			_, err = out.Write(append(text, t.tail...))
		}
		next = written
		return errors.Join(err, t.f.Close())
	})
	if err == nil {
		t.contents = next
	}
	return errors.Join(disk.Bare(err), t.reopen())
}

// condensed returns the contents of a rewritten file, with samples of at least that span. It doubles the span until
// samples and bytes are at most two thirds of their bounds.
func (t *file) condensed(span int) (c contents, text []byte, err error) {
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
	if t.f = f; errors.Is(disk.Own(f), disk.ErrOwned) || !t.isSameFile() {
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

// spanTolerance is the factor by which a sample may exceed the span: samples of a second are not
// exact to the millisecond.
const spanTolerance = 1.25

// condense returns what stays of a file with those contents, with samples of that span.
func condense(file io.Reader, holds contents, span int) (contents, []byte, error) {
	c := &condenser{span: span, runs: holds.starts, merging: max(0, holds.starts-maxStarts+1)}
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, whole, err := readLine(in)
		if err == nil && whole {
			err = c.takeLine(line)
		}
		if err != nil {
			return c.contents, nil, err
		}
		if !whole {
			text := c.newText()
			return c.contents, text, nil
		}
	}
}

// takeLine reads the next line of the file. Failures and a summary wait for the end of their run, as a later one
// replaces them. It refuses a line of any other kind.
func (c *condenser) takeLine(line []byte) error {
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
		c.writeLine(h.line())
		c.starts++
	}
	c.nth++
}

// endRun writes what is pending of a run: its sample, its failures and changes if it is recent, and its summary.
func (c *condenser) endRun() {
	c.flush()
	if c.runs-c.nth < runsWithFailures {
		if c.failures != nil {
			c.writeLine(c.failures)
		}
		for _, line := range c.changes[:min(len(c.changes), MostChanges)] {
			c.writeLine(line)
		}
	}
	if c.summary != nil {
		c.writeLine(c.summary)
	}
	c.failures, c.summary, c.changes = nil, nil, nil
}

// grow merges the next sample into the pending one, as far as the span allows.
func (c *condenser) grow(s *observe.Sample) {
	if c.pending != nil && c.pending.Span+s.Span <= float64(c.span)*spanTolerance {
		merged := c.pending.Merge(*s)
		c.pending = &merged
		return
	}
	c.flush()
	c.pending = s
}

// flush writes the pending sample.
func (c *condenser) flush() {
	if c.pending == nil {
		return
	}
	c.writeLine(bytes.TrimSuffix(encodeSample(c.pending), []byte("\n")))
	c.samples++
	c.pending = nil
}

func (c *condenser) writeLine(line []byte) {
	c.body.Write(line)
	c.body.WriteByte('\n')
	c.lines++
}

// newText returns the whole new file. It comes last, as only the end shows how many runs the first line stands for.
func (c *condenser) newText() []byte {
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

// mayMove refuses a file that is no timeline, and one that a run writes. It releases the file when it returns.
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
