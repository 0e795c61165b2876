package serve

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/live"
	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/command/report"
)

// A past keeps what a server has done: for its page at --metrics-addr, and in a file next to --state. A nil one keeps
// nothing.
type past struct {
	*server
	counts   *report.Serving
	address  *exposition.Server // nil: there is none
	page     *live.Page
	heldText atomic.Pointer[string] // what holds requests back, in words
	ended    atomic.Bool

	save func(*report.Served, string) error // to the file of a state

	stop     chan struct{}
	keepDone chan struct{} // closed when keep has ended

	saying    sync.Mutex // guards abandoned, and is held while something is said
	abandoned bool       // keep is left behind, and must say nothing any more
}

// sampleEvery is the period of samples, as in a run.
const sampleEvery = time.Second

// fileWait bounds how long the end of a server waits for a disk that hangs, as in a run.
const fileWait = 5 * time.Second

// openPast begins to keep the past, if a flag asks for it.
func (s *server) openPast(addr string, simulated bool) (err error) {
	if addr == "" && s.own.state == "" {
		return nil
	}
	p := &past{
		server: s, counts: report.NewServing(s.upstream.name(), simulated, s.began),
		save: (*report.Served).Write, stop: make(chan struct{}), keepDone: make(chan struct{}),
	}
	if s.own.state != "" {
		if err := report.CheckServed(s.own.state); err != nil {
			return err
		}
	}
	if addr != "" {
		p.page = live.New(live.Config{Render: p.render, Report: p.report, Clock: s.Clock})
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", exposition.Handler(metrics.Build{}, s.meter, clusterView{s}))
		p.page.Register(mux)
		if p.address, err = exposition.Listen(addr, mux); err != nil {
			return exit.Refuse("--metrics-addr: %v: choose another address, or end the program that has it", err)
		}
		s.console.Notice(event.Metrics, p.address.Notice("this server"))
		s.console.Notice(event.Metrics, fmt.Sprintf("the server is shown at http://%s/", p.address.Addr()))
	}
	s.past = p
	go p.keep()
	return nil
}

// note counts a request that has ended. Any connection may call it.
func (p *past) note(a *handler.Access) {
	if p == nil {
		return
	}
	r := report.Request{
		Client: a.Client, Class: a.Class.String(), Lane: a.Lane, Code: a.Code, Waited: a.Waited, First: a.First, USD: a.Cost.USD(), Priced: a.Priced, Called: a.Attempts > 0,
	}
	switch {
	case a.Gone:
		r.Result = report.Gone
	case a.Code != "":
		r.Result = report.Refused
	case a.Status >= http.StatusBadRequest:
		r.Result = report.Broken
	}
	p.counts.Note(&r)
}

// keep takes a sample each second, and writes the file every report.ServedEvery and at the end.
func (p *past) keep() {
	defer close(p.keepDone)
	ticker := p.Clock.NewTicker(sampleEvery)
	defer ticker.Stop()
	written, said := p.Clock.Now(), false
	for last := false; !last; {
		select {
		case <-ticker.Chan():
		case <-p.stop:
			last = true
		}
		now := p.Clock.Now()
		p.sample(now)
		if last {
			p.ended.Store(true)
		}
		if p.own.state == "" || !last && now.Sub(written) < report.ServedEvery {
			continue
		}
		written = now
		if err := p.save(p.now(), p.own.state); err != nil && !said {
			said = true
			p.notice(exit.PlainText(err) + ": the server goes on without it")
		}
	}
}

// notice shows what is wrong with the file, unless keep was abandoned.
func (p *past) notice(text string) {
	p.saying.Lock()
	defer p.saying.Unlock()
	if !p.abandoned {
		p.console.Notice(event.Report, report.ServedPath(p.own.state)+": "+text)
	}
}

// sample notes how the server stands.
func (p *past) sample(now time.Time) {
	held := ""
	st, err := p.handler.Status(context.Background()) // it waits for one pass of the coordinator at most
	if err == nil {
		held = heldBy(&st)
	} // or else the server is closing: nothing waits
	p.heldText.Store(&held)
	p.counts.Sample(now, st.Waiting, st.InFlight)
}

// now returns the figures so far.
func (p *past) now() *report.Served {
	state := report.Running
	if p.ended.Load() {
		state = report.Ended
	}
	return p.counts.Report(p.Clock.Now(), state)
}

func (p *past) render() (title, body string) {
	held := ""
	if text := p.heldText.Load(); text != nil {
		held = *text
	}
	return p.now().Live(held)
}

func (p *past) report() ([]byte, error) { return []byte(p.now().HTML()), nil }

// close has the file written a last time, and ends the page. If the disk hangs, it stops waiting and abandons keep.
func (p *past) close() {
	if p == nil {
		return
	}
	close(p.stop)
	select {
	case <-p.keepDone:
	case <-p.Clock.After(fileWait):
		p.notice(fmt.Sprintf("it is not up to date, as its disk has not answered for %v", fileWait))
		p.saying.Lock()
		p.abandoned = true
		p.saying.Unlock()
	}
	if p.address != nil {
		p.page.End()
		_ = p.address.Close() // it was read only
	}
}
