package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cmd/headrace/internal/printable"
)

// plainEvery is the period of plain lines: often enough to see that it goes on,
// seldom enough that an hour's run leaves a log that can be read.
const plainEvery = 5 * time.Second

// plain shows a run in lines, for logs and for whoever pipes them.
type plain struct {
	out io.Writer
	meter
}

// say writes one line, whoever said what is in it.
func (p *plain) say(line string) { fmt.Fprintln(p.out, printable.Line(line)) }

func (p *plain) scale(s scale)      { p.meter.scale = s }
func (p *plain) notice(text string) { p.say("headrace: " + text) }
func (p *plain) log(line []byte)    { _, _ = p.out.Write(line) } // a log that cannot be written is lost

func (p *plain) transition(t batch.Transition) {
	p.say(clockTime(t.At.Sub(p.began)) + "  " + story(t))
}

func (p *plain) longWait(w batch.LongWait) {
	p.say(clockTime(w.At.Sub(p.began)) + "  warning: " + waitStory(w))
}

func (p *plain) status(s batch.Status) {
	now := p.read(s)
	p.say(clockTime(now.elapsed) + "  " + strings.Join(now.words(), "  "))
}

func (p *plain) summary(s *report) {
	if s != nil {
		fmt.Fprint(p.out, s.text())
	}
}

// clockTime shows the time since the start, in a column.
func clockTime(d time.Duration) string { return fmt.Sprintf("%7.1fs", d.Seconds()) }

// words are the figures of a picture, the most telling first.
func (p picture) words() []string {
	words := []string{p.progress()}
	if percent, ok := p.percent(); ok {
		words = append(words, fmt.Sprintf("%d%%", percent))
	}
	words = append(words, rate(p.perSecond))
	if p.left > 0 {
		words = append(words, "~"+wait(p.left)+" left")
	}
	if p.failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", p.failed))
	}
	if phase := phaseWords(p); phase != "" {
		words = append(words, phase)
	}
	if breakers := breakerWords(p); breakers != "" {
		words = append(words, breakers)
	}
	if slowed := slowedWords(p); slowed != "" {
		words = append(words, slowed)
	}
	words = append(words, fmt.Sprintf("%d in flight", p.inFlight), fmt.Sprintf("%d waiting", p.waiting))
	if p.belief != "" {
		words = append(words, "("+p.belief+")")
	}
	if p.cause != "" {
		words = append(words, p.cause)
	}
	return words
}

func (p picture) progress() string {
	if p.total < 0 {
		return fmt.Sprintf("%d done", p.done)
	}
	return fmt.Sprintf("%d/%d", p.done, p.total)
}
