package timeline

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/headrace/headrace/observe"
)

// Of runs before the latest ones only what they came to is kept, not what failed in them.
const runsWithFailures = 10

// condenser writes what stays of a file anew: neighbouring samples of one run merge until
// they have the span, of what failed and what a run came to the latest line stays, and the
// oldest runs merge into one.
type condenser struct {
	span     int // of the samples that it makes
	runs     int // that the file has
	merging  int // of these, the ones that still merge with the first
	nth      int // the one that is read
	first    head
	pending  *observe.Sample
	failures []byte
	summary  []byte
	body     bytes.Buffer // behind the line that begins the first run
	contents
}

// room is by how much a sample may be longer than the span: those of a second are not to
// the millisecond.
const room = 1.25

// condense gives what stays of a file that holds that, with samples of that span.
func condense(file io.Reader, holds contents, span int) (contents, []byte, error) {
	c := &condenser{span: span, runs: holds.starts, merging: max(0, holds.starts-MaxStarts+1)}
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
	default:
		return errors.New("another program has changed it")
	}
	return nil
}

// begin begins a run, or makes it one with the first.
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

// endRun writes what is left of a run.
func (c *condenser) endRun() {
	c.flush()
	if c.failures != nil && c.runs-c.nth < runsWithFailures {
		c.line(c.failures)
	}
	if c.summary != nil {
		c.line(c.summary)
	}
	c.failures, c.summary = nil, nil
}

// grow lets a sample grow by the next one, as far as it may.
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

// all is the new file: how many runs the first line stands for is known at the end.
func (c *condenser) all() []byte {
	c.endRun()
	text := append(c.first.line(), '\n')
	text = append(text, c.body.Bytes()...)
	c.contents.span, c.starts, c.lines, c.sound = c.span, c.starts+1, c.lines+1, int64(len(text))
	return text
}
