package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cmd/headrace/internal/printable"
)

// Manner is how a run is shown: Live, Plain, JSON or Silent makes one.
type Manner struct {
	display display
	every   time.Duration
}

// Every is the period of the pictures that it shows.
func (m Manner) Every() time.Duration { return m.every }

// display shows what happens in a run, in one of several manners.
type display interface {
	scale(s Scale)                 // how much there is to do
	notice(text string)            // something the user should know
	log(line []byte)               // a line of the log, as it is
	transition(t batch.Transition) // a lane changed its phase
	longWait(w batch.LongWait)     // a lane or an item waits for long
	status(s batch.Status)         // a picture, once a period
	summary(s *Report)             // how it ended; nil: nothing is to be said of it
}

// silentEvery is the period of pictures that nobody sees.
const silentEvery = time.Hour

// Silent shows only what a user must know.
func Silent(out io.Writer) Manner { return Manner{silent{out}, silentEvery} }

type silent struct{ out io.Writer }

func (s silent) notice(text string)          { fmt.Fprintf(s.out, "headrace: %s\n", printable.Line(text)) }
func (s silent) log(line []byte)             { _, _ = s.out.Write(line) } // a log that cannot be written is lost
func (s silent) scale(Scale)                 {}
func (s silent) transition(batch.Transition) {}
func (s silent) longWait(batch.LongWait)     {} // the log says it
func (s silent) status(batch.Status)         {}
func (s silent) summary(*Report)             {}

// textOf is what is shown of a cause; "" for nil.
func textOf(cause error) string {
	if cause == nil {
		return ""
	}
	return cause.Error()
}
