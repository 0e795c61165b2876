package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
)

// Manner is a way to show a run: Panel, Live, Plain, JSON or Silent makes one.
type Manner struct {
	display display
	every   time.Duration
}

// Every returns the period of the pictures that it shows.
func (m Manner) Every() time.Duration { return m.every }

// display shows what happens in a run, in one of several manners. It belongs to one
// goroutine.
type display interface {
	begin(s event.Start, began time.Time)              // what runs, and since when
	notice(at time.Time, code event.Code, text string) // something the user should know
	log(line []byte)                                   // a line of the log, as it is
	transition(t batch.Transition)                     // a lane changed its phase
	longWait(w batch.LongWait)                         // a lane or an item waits for long
	status(p *event.Progress)                          // how the run stands, once a period
	all(p *event.Progress)                             // the same in lines, once, when a user asks for it
	summary(s *Report)                                 // how it ended; nil: there is no report
}

// silentEvery is the period of pictures that nobody sees.
const silentEvery = time.Hour

// Silent shows only what a user must know.
func Silent(out io.Writer) Manner { return Manner{silent{out}, silentEvery} }

type silent struct{ out io.Writer }

func (s silent) notice(_ time.Time, _ event.Code, text string) {
	fmt.Fprintf(s.out, "headrace: %s\n", printable.Line(text))
}
func (s silent) log(line []byte)              { _, _ = s.out.Write(line) } // a log that cannot be written is lost
func (s silent) begin(event.Start, time.Time) {}
func (s silent) transition(batch.Transition)  {}
func (s silent) longWait(batch.LongWait)      {} // the log has it
func (s silent) status(*event.Progress)       {}
func (s silent) all(p *event.Progress)        { (&plain{out: s.out}).all(p) }
func (s silent) summary(*Report)              {}

// textOf returns the text that is shown for a cause; "" for nil.
func textOf(cause error) string {
	if cause == nil {
		return ""
	}
	return cause.Error()
}
