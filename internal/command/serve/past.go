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
	counts  *report.Serving
	address *exposition.Server // nil: there is none
	page    *live.Page
	held    atomic.Pointer[string] // what holds requests back, in words
	ended   atomic.Bool

	over  chan struct{}
	files sync.WaitGroup
}

// sampleEvery is the period of samples, as in a run.
const sampleEvery = time.Second

// openPast begins to keep the past, if a flag asks for it.
func (s *server) openPast(addr string, simulated bool) (err error) {
	if addr == "" && s.own.state == "" {
		return nil
	}
	p := &past{server: s, counts: report.NewServing(s.upstream.name(), simulated, s.began), over: make(chan struct{})}
	if s.own.state != "" {
		if err := report.CheckServed(s.own.state); err != nil {
			return err
		}
	}
	if addr != "" {
		p.page = live.New(live.Config{Render: p.render, Report: p.report, Clock: s.Clock})
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", exposition.Handler(metrics.Build{}, s.meter, inCluster{s}))
		p.page.Register(mux)
		if p.address, err = exposition.Listen(addr, mux); err != nil {
			return exit.Refuse("--metrics-addr: %v: choose another address, or end the program that has it", err)
		}
		s.console.Notice(event.Metrics, p.address.Notice("this server"))
		s.console.Notice(event.Metrics, fmt.Sprintf("the server is shown at http://%s/", p.address.Addr()))
	}
	s.past = p
	p.files.Go(p.keep)
	return nil
}

// note counts a request that has ended. Connections call it.
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

// keep takes a sample each second, and writes the file now and then, until the end.
func (p *past) keep() {
	ticker := p.Clock.NewTicker(sampleEvery)
	defer ticker.Stop()
	written, said := p.Clock.Now(), false
	for last := false; !last; {
		select {
		case <-ticker.Chan():
		case <-p.over:
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
		if err := p.now().Write(p.own.state); err != nil && !said {
			said = true
			p.console.Notice(event.Report, fmt.Sprintf("%s: %s: the server goes on without it", report.ServedPath(p.own.state), exit.PlainText(err)))
		}
	}
}

// sample notes how the server stands.
func (p *past) sample(now time.Time) {
	held := ""
	st, err := p.handler.Status(context.Background()) // it waits for one pass of the coordinator at most
	if err == nil {
		held = heldBy(&st)
	} // or else the server is closing: nothing waits
	p.held.Store(&held)
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
	if text := p.held.Load(); text != nil {
		held = *text
	}
	return p.now().Live(held)
}

func (p *past) report() ([]byte, error) { return []byte(p.now().HTML()), nil }

// close writes the file for the last time, and ends the page.
func (p *past) close() {
	if p == nil {
		return
	}
	close(p.over)
	p.files.Wait()
	if p.address != nil {
		p.page.End()
		_ = p.address.Close() // it was read only
	}
}
