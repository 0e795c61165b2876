package timeline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/observe"
)

// A Run is one run in a timeline, or several old ones together.
type Run struct {
	Start    event.Start
	At       time.Time        // when it began
	Merged   int              // the runs that it stands for: 1, except for the oldest of very many
	Samples  []observe.Sample // of spans that follow each other
	Failures []observe.Failure
	Changes  []event.Changed
	Progress *event.Progress // how it stood the last time; only the latest run has one
	Over     bool            // it has ended
	Summary  *event.Summary  // its outcome; nil: it has not ended, or nobody asked how
}

// Ended returns when the run was last heard of.
func (r *Run) Ended() time.Time {
	if n := len(r.Samples); n > 0 {
		return r.Samples[n-1].At
	}
	return r.At
}

// ReadRuns reads all runs of a timeline, the oldest first, while a run writes it or afterwards.
// It takes at most a few MiB of memory, as a timeline is at most maxBytes long. The errors are
// ErrNone, ErrNotOurs, and those of the file system.
func ReadRuns(path string) (runs []Run, err error) {
	err = eachLine(path, func(p *parsed, line []byte) error {
		if p.kind != start {
			runs[len(runs)-1].add(p, line)
			return nil
		}
		r := Run{Merged: p.head.runs}
		if json.Unmarshal(line, &r.Start) == nil {
			r.At, _ = time.Parse(timeLayout, r.Start.At)
		}
		runs = append(runs, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// Copy copies the lines of a timeline one by one, so that it needs the memory of one line. bare leaves out the lines
// that quote prompts and providers. The errors are those of ReadRuns, and of the writer.
func Copy(to io.Writer, path string, bare bool) error {
	return eachLine(path, func(p *parsed, line []byte) error {
		if p.kind == unknown || bare && p.kind != start && p.kind != sample && p.kind != changed {
			return nil
		}
		_, err := to.Write(append(line, '\n'))
		return err
	})
}

// Write writes what is known of the run as lines of a timeline: its start, its samples and its changes.
func (r *Run) Write(to io.Writer) error {
	span := 1
	for k := range r.Samples {
		span = max(span, int(r.Samples[k].Span+halfSecond))
	}
	h, err := newHead(r.Start, event.Stamp(r.At), span)
	if err == nil {
		_, err = to.Write(append(h.line(), '\n'))
	}
	for k := range r.Samples {
		if err != nil {
			break
		}
		_, err = to.Write(encodeSample(&r.Samples[k]))
	}
	for k := range r.Changes {
		if err != nil {
			break
		}
		line, _ := json.Marshal(&r.Changes[k]) // text cannot fail
		_, err = to.Write(append(printable.JSON(line), '\n'))
	}
	return err
}

// eachLine calls take for each whole line of a timeline. The first line must start a run.
func eachLine(path string, take func(p *parsed, line []byte) error) error {
	file, err := os.OpenFile(path, os.O_RDONLY|disk.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNone
	}
	if err != nil {
		return disk.Bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(ErrNotOurs, err)
	}
	in := bufio.NewReaderSize(file, 64<<10)
	for first := true; ; first = false {
		line, whole, err := readLine(in)
		if err != nil {
			return disk.Bare(err)
		}
		if !whole {
			return nil
		}
		p := parse(line)
		if first && p.kind != start {
			return ErrNotOurs
		}
		if err := take(&p, line); err != nil {
			return err
		}
	}
}

// add adds one line to the run. It ignores lines that it cannot read, such as an end that is being written.
func (r *Run) add(p *parsed, line []byte) {
	switch p.kind {
	case sample:
		r.Samples = append(r.Samples, *p.sample)
	case failures:
		var l failuresLine
		if json.Unmarshal(line, &l) == nil {
			r.Failures = l.Failures
		}
	case changed:
		var c event.Changed
		if json.Unmarshal(line, &c) == nil {
			r.Changes = append(r.Changes, c)
		}
	case summary:
		s := new(event.Summary)
		r.Over = true
		if json.Unmarshal(line, s) == nil && bytes.Contains(line, []byte(`"elapsed_s":`)) { // a run whose reader had gone has none
			r.Summary = s
		}
	case progress:
		r.Progress = p.progress
	}
}
