package progress

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
)

// consoleRoom is how many things may wait to be shown. What a terminal is too slow
// for is dropped and counted: a run does not wait for it.
const consoleRoom = 256

// Console is the one goroutine that writes to the terminal while a run is on. Open makes
// one, Close ends it. It may be told things by many goroutines.
type Console struct {
	now     func() time.Time
	news    chan func(display)
	over    chan struct{}
	dropped atomic.Int64
}

// Open begins to show a run in that manner. Now is the clock of what it is told without a
// time.
func Open(m Manner, now func() time.Time) *Console {
	c := &Console{now: now, news: make(chan func(display), consoleRoom), over: make(chan struct{})}
	go func() {
		defer close(c.over)
		for show := range c.news {
			show(m.display)
		}
	}()
	return c
}

// tell has something shown soon, or drops it. It never waits.
func (c *Console) tell(show func(display)) {
	select {
	case c.news <- show:
	default:
		c.dropped.Add(1)
	}
}

// Notice shows something the user should know, soon; if too much is to be shown, it is
// counted instead.
func (c *Console) Notice(code event.Code, text string) {
	at := c.now()
	c.tell(func(d display) { d.notice(at, code, text) })
}

// Begin says what runs, and since when. Until it was called there must be no Observe.
func (c *Console) Begin(s event.Start, began time.Time) {
	c.tell(func(d display) { d.begin(s, began) })
}

// Show shows how the run stands, as the manner does once a period.
func (c *Console) Show(p *event.Progress) { c.tell(func(d display) { d.status(p) }) }

// ShowAll shows how the run stands in lines, once, whatever the manner.
func (c *Console) ShowAll(p *event.Progress) { c.tell(func(d display) { d.all(p) }) }

// Write makes the console the end of a log. The line is the logger's again when
// it returns.
func (c *Console) Write(line []byte) (int, error) {
	kept := append([]byte(nil), line...)
	c.tell(func(d display) { d.log(kept) })
	return len(line), nil
}

// Observe shows what happens in a run. How it stands, and what it comes to, come by another
// way. Causes are shown as they are: whoever passes them on has made each a line without a
// key.
func (c *Console) Observe(e batch.Event) {
	switch {
	case e.Transition != nil:
		c.tell(func(d display) { d.transition(*e.Transition) })
	case e.LongWait != nil:
		c.tell(func(d display) { d.longWait(*e.LongWait) })
	}
}

// Close waits until everything was shown, the report of a run last, unless it is nil.
// Nothing may be told afterwards.
func (c *Console) Close(s *Report) {
	if n := c.dropped.Load(); n > 0 {
		at := c.now()
		c.news <- func(d display) {
			d.notice(at, event.LeftOut, fmt.Sprintf("%d lines were left out here: the terminal was too slow for them", n))
		}
	}
	c.news <- func(d display) { d.summary(s) }
	close(c.news)
	<-c.over
}
