package progress

import (
	"encoding/json"
	"io"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
)

// jsonEvery is the period of progress events for programs.
const jsonEvery = time.Second

// JSON shows a run as JSON, one object a line. Start holds what is known before anything is
// read: it is the first line if Begin comes too late.
func JSON(out io.Writer, start event.Start) Manner {
	return Manner{&events{out: out, start: start}, jsonEvery}
}

// mostEarlyLines is the number of lines that may wait for the start of a run.
const mostEarlyLines = 64

// events shows a run as JSON, one object a line. The first is the start.
type events struct {
	out   io.Writer
	start event.Start // until it is written
	begun bool        // the start is written
	early [][]byte    // lines that came before the start
	began time.Time
}

func (e *events) begin(s event.Start, began time.Time) {
	e.began = began
	if !e.begun {
		e.start = s
		e.writeStart()
	}
}

// writeStart writes the start, and the lines that waited for it.
func (e *events) writeStart() {
	e.begun = true
	e.write(marshal(e.start))
	for _, line := range e.early {
		e.write(line)
	}
	e.early = nil
}

// put writes a line, or keeps it until the start is written. An urgent line makes the start be written now.
func (e *events) put(line []byte, urgent bool) {
	if e.begun {
		e.write(line)
		return
	}
	if e.early = append(e.early, line); urgent || len(e.early) >= mostEarlyLines {
		e.writeStart()
	}
}

// marshal returns a value as a line of JSON. If that fails, the line is a notice with the error.
func marshal(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		line, _ = json.Marshal(event.Notice{Event: "notice", Message: err.Error(), Code: event.Other})
	}
	return append(line, '\n')
}

func (e *events) write(line []byte) { _, _ = e.out.Write(printable.JSON(line)) } // a progress that cannot be shown is lost

func (e *events) print(v any) { e.put(marshal(v), false) }

func (e *events) log(line []byte) { e.put(append([]byte(nil), line...), false) }

func (e *events) notice(at time.Time, code event.Code, text string) {
	e.put(marshal(event.Notice{Event: "notice", Message: text, At: event.Stamp(at), Code: code}), code == event.Checking)
}

func (e *events) transition(t *batch.Transition) { e.print(event.OfTransition(t, e.began)) }

func (e *events) longWait(w *batch.LongWait) { e.print(event.OfLongWait(w, e.began)) }

func (e *events) changed(c *event.Changed) { e.print(c) }

func (e *events) status(p *event.Progress) { e.print(p) }

// all prints the same event: it says everything, and lines of another kind would disturb the
// programs that read these.
func (e *events) rows(func(width, height int) []string, string) {} // nothing shows a server in JSON
func (e *events) all(p *event.Progress)                         { e.print(p) }

func (e *events) summary(s *Report) {
	if s != nil {
		e.print(s.Event())
	}
	if !e.begun && len(e.early) > 0 {
		e.writeStart()
	}
}
