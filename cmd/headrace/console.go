package main

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cmd/headrace/internal/printable"
)

// consoleRoom is how many things may wait to be shown. What a terminal is too slow
// for is dropped and counted: a run does not wait for it.
const consoleRoom = 256

// console is the one goroutine that writes to standard error while a run is on.
type console struct {
	news    chan func(display)
	over    chan struct{}
	dropped atomic.Int64
}

// display shows what happens in a run, in one of several manners.
type display interface {
	scale(s scale)                 // how much there is to do
	notice(text string)            // something the user should know
	log(line []byte)               // a line of the log, as it is
	transition(t batch.Transition) // a lane changed its phase
	longWait(w batch.LongWait)     // a lane or an item waits for long
	status(s batch.Status)         // a picture, once a period
	summary(s *report)             // how it ended; nil: nothing is to be said of it
}

func newConsole(d display) *console {
	c := &console{news: make(chan func(display), consoleRoom), over: make(chan struct{})}
	go func() {
		defer close(c.over)
		for show := range c.news {
			show(d)
		}
	}()
	return c
}

// tell has something shown soon, or drops it. It never waits.
func (c *console) tell(show func(display)) {
	select {
	case c.news <- show:
	default:
		c.dropped.Add(1)
	}
}

func (c *console) notice(text string) { c.tell(func(d display) { d.notice(text) }) }

// Write makes the console the end of a log. The line is the logger's again when
// it returns.
func (c *console) Write(line []byte) (int, error) {
	kept := append([]byte(nil), line...)
	c.tell(func(d display) { d.log(kept) })
	return len(line), nil
}

// observe shows what a run tells of itself. The summary comes by another way.
func (c *console) observe(e batch.Event) {
	switch {
	case e.Transition != nil:
		c.tell(func(d display) { d.transition(*e.Transition) })
	case e.LongWait != nil:
		c.tell(func(d display) { d.longWait(*e.LongWait) })
	case e.Status != nil:
		c.tell(func(d display) { d.status(*e.Status) })
	}
}

// close waits until everything was shown, the summary of a run last, if there is
// one. Nothing may be told afterwards.
func (c *console) close(s *report) {
	if n := c.dropped.Load(); n > 0 {
		c.news <- func(d display) {
			d.notice(fmt.Sprintf("%d lines were left out here: the terminal was too slow for them", n))
		}
	}
	c.news <- func(d display) { d.summary(s) }
	close(c.news)
	<-c.over
}

// silent shows only what a user must know.
type silent struct{ out io.Writer }

func (s silent) notice(text string)          { fmt.Fprintf(s.out, "headrace: %s\n", printable.Line(text)) }
func (s silent) log(line []byte)             { _, _ = s.out.Write(line) } // a log that cannot be written is lost
func (s silent) scale(scale)                 {}
func (s silent) transition(batch.Transition) {}
func (s silent) longWait(batch.LongWait)     {} // the log says it
func (s silent) status(batch.Status)         {}
func (s silent) summary(*report)             {}
