package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
)

// plainEvery is the period of plain lines. It is short enough to see that the run goes on, and
// long enough that an hour's run leaves a readable log.
const plainEvery = 5 * time.Second

// Plain shows a run in lines: for logs and pipes.
func Plain(out io.Writer) Manner { return Manner{&plain{out: out}, plainEvery} }

// plain shows a run in lines, for logs and pipes.
type plain struct {
	out   io.Writer
	began time.Time
}

// say writes one line that steers nothing, no matter where its texts come from.
func (p *plain) say(line string) { fmt.Fprintln(p.out, printable.Line(line)) }

func (p *plain) begin(_ event.Start, began time.Time)          { p.began = began }
func (p *plain) notice(_ time.Time, _ event.Code, text string) { p.say("headrace: " + text) }
func (p *plain) log(line []byte)                               { _, _ = p.out.Write(line) } // a log that cannot be written is lost

func (p *plain) transition(t batch.Transition) {
	p.say(clockTime(t.At.Sub(p.began)) + "  " + Story(t))
}

func (p *plain) longWait(w batch.LongWait) {
	p.say(clockTime(w.At.Sub(p.began)) + "  warning: " + waitStory(w))
}

func (p *plain) status(e *event.Progress) {
	p.say(Line(e))
}

func (p *plain) all(e *event.Progress) {
	for _, line := range event.Lines(e) {
		p.say(line)
	}
}

func (p *plain) summary(s *Report) {
	if s != nil {
		fmt.Fprint(p.out, s.text())
	}
}

// clockTime shows the time since the start, in a column.
func clockTime(d time.Duration) string { return fmt.Sprintf("%7.1fs", d.Seconds()) }
