package progress

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
)

// consoleRoom is the number of things that may wait for the terminal. What does not fit is
// dropped and counted: a run does not wait for a slow terminal.
const consoleRoom = 256

// Console is the one goroutine that writes to the terminal while a run is on. Open makes
// one, Close ends it. Many goroutines may use it at once.
type Console struct {
	now     func() time.Time
	pending chan func(display)
	ended   chan struct{}
	dropped atomic.Int64
}

// Open begins to show a run in that manner. Now gives the time of news without a time.
func Open(m Manner, now func() time.Time) *Console {
	c := &Console{now: now, pending: make(chan func(display), consoleRoom), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		for show := range c.pending {
			show(m.display)
		}
	}()
	return c
}

// queue queues something to be shown, or drops and counts it. It never waits.
func (c *Console) queue(show func(display)) {
	select {
	case c.pending <- show:
	default:
		c.dropped.Add(1)
	}
}

// Notice shows something that the user should know. If too much waits to be shown, it is
// counted instead.
func (c *Console) Notice(code event.Code, text string) {
	at := c.now()
	c.queue(func(d display) { d.notice(at, code, text) })
}

// Begin says what runs, and since when. Observe must not be called before it.
func (c *Console) Begin(s event.Start, began time.Time) {
	c.queue(func(d display) { d.begin(s, began) })
}

// Changed shows what a person changed of the run.
func (c *Console) Changed(what event.Changed) { c.queue(func(d display) { d.changed(&what) }) }

// Show shows how the run stands, as the manner does once a period.
func (c *Console) Show(p *event.Progress) { c.queue(func(d display) { d.status(p) }) }

// ShowRows shows how a server stands, once a period: the rows that layout makes for a terminal's size, or
// the line in their place.
func (c *Console) ShowRows(layout func(width, height int) []string, line string) {
	c.queue(func(d display) { d.rows(layout, line) })
}

// ShowAll shows how the run stands in lines, once, in any manner.
func (c *Console) ShowAll(p *event.Progress) { c.queue(func(d display) { d.all(p) }) }

// Write makes the console the writer of a log. It copies the line.
func (c *Console) Write(line []byte) (int, error) {
	kept := append([]byte(nil), line...)
	c.queue(func(d display) { d.log(kept) })
	return len(line), nil
}

// Observe shows what happens in a run. Its progress and its report come by other ways.
// Causes are shown as they are: the caller has made each a line without a key.
func (c *Console) Observe(e batch.Event) {
	switch {
	case e.Transition != nil:
		c.queue(func(d display) { d.transition(e.Transition) })
	case e.LongWait != nil:
		c.queue(func(d display) { d.longWait(e.LongWait) })
	}
}

// Settle waits until everything was shown that came before it.
func (c *Console) Settle() {
	shown := make(chan struct{})
	c.pending <- func(display) { close(shown) }
	<-shown
}

// Close waits until everything was shown, the report of a run last, unless it is nil. No
// method may be called afterwards.
func (c *Console) Close(s *Report) {
	if n := c.dropped.Load(); n > 0 {
		at := c.now()
		c.pending <- func(d display) {
			d.notice(at, event.LeftOut, fmt.Sprintf("%d lines were left out here: the terminal was too slow for them", n))
		}
	}
	c.pending <- func(d display) { d.summary(s) }
	close(c.pending)
	<-c.ended
}
