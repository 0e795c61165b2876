package timeline

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/headrace/headrace/observe"
)

// Runs before the latest ones keep only their summary, without their failures.
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
	body     bytes.Buffer // what follows the line that begins the first run
	contents
}

// room is the factor by which a sample may exceed the span: samples of a second are not
// exact to the millisecond.
const room = 1.25

// condense returns what stays of a file with those contents, with samples of that span.
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
	if c.failures != nil && c.runs-c.nth < runsWithFailures {
		c.line(c.failures)
	}
	if c.summary != nil {
		c.line(c.summary)
	}
	c.failures, c.summary = nil, nil
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
