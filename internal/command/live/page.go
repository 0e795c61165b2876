package live

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/command/report"
)

// Bounds of a page.
const (
	// MaxViewers is the number of connections that get its states: a team, and a screen on a wall.
	MaxViewers = 16
	// Every is the period of states: as often as the figures change.
	Every = time.Second
	// maxTimelines is the number of timelines that are sent at once.
	maxTimelines = 4
	// timelineWait ends one that goes to a slow reader: while it lasts, its file is open.
	timelineWait = 30 * time.Second
	// writeWait ends the connection of a viewer that takes nothing.
	writeWait = 10 * time.Second
)

// policy forbids all that is not served here, and pages elsewhere that would frame this one.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed live.js
var script []byte

//go:embed pointer.js
var pointer []byte

//go:embed live.css
var style []byte

// Config describes a page.
type Config struct {
	// Render returns the title and the body as they are now. Only one goroutine at a time calls it.
	Render func() (title, body string)
	// Report makes the whole report as a page, for /report.html; nil: there is none. Only one goroutine at a time calls it.
	Report func() ([]byte, error)
	// Timeline writes the timeline for /timeline.jsonl, without what others have said if it is to be bare; nil: there is
	// none. Any goroutine calls it.
	Timeline func(to io.Writer, bare bool) error
	Clock    clockwork.Clock
}

// A Page shows its subject to viewers. Any goroutine may use it.
type Page struct {
	cfg     Config
	viewers chan struct{} // a place for each
	readers chan struct{} // likewise, of the timeline
	ended   chan struct{} // closed with the subject's end
	end     sync.Once

	mu         sync.Mutex // guards what follows
	renderedAt time.Time  // when the state was rendered
	isLast     bool       // it is the last one
	title      string
	body       string
	event      []byte // the same, as an event
	stateCount int    // of states

	reporting sync.Mutex // held while a report is made
}

// New returns the page of a subject that may begin later.
func New(cfg Config) *Page {
	return &Page{cfg: cfg, viewers: make(chan struct{}, MaxViewers), readers: make(chan struct{}, maxTimelines), ended: make(chan struct{})}
}

// End says that the subject has ended. Viewers get its last state, and their connections close.
func (p *Page) End() { p.end.Do(func() { close(p.ended) }) }

// Register adds the page's paths.
func (p *Page) Register(mux *http.ServeMux) {
	get := func(path string, answer http.HandlerFunc) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Security-Policy", policy)
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cache-Control", "no-store")
			answer(w, r)
		})
	}
	get("/{$}", p.servePage)
	get("/events", p.serveEvents)
	get("/live.js", serveFixed("text/javascript; charset=utf-8", script))
	get("/pointer.js", serveFixed("text/javascript; charset=utf-8", pointer))
	get("/live.css", serveFixed("text/css; charset=utf-8", append([]byte(report.Style()), style...)))
	if p.cfg.Report != nil {
		get("/report.html", p.serveReport)
	}
	if p.cfg.Timeline != nil {
		get("/timeline.jsonl", p.serveTimeline)
	}
}

// serveFixed returns a handler that sends a text of that content type.
func serveFixed(kind string, text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text) // a reader that has gone is nobody's fault
	}
}

// isOver reports whether the subject has ended.
func (p *Page) isOver() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// currentState returns the title, body, event and number of the latest state. It renders a new one if that is older
// than half a period. last says that no other follows.
func (p *Page) currentState() (title, body string, event []byte, count int, last bool) {
	over := p.isOver() // before the rendering, so that the last state is one after the end
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.cfg.Clock.Now(); !p.isLast && (over || p.stateCount == 0 || now.Sub(p.renderedAt) >= Every/2) {
		p.title, p.body = p.cfg.Render()
		p.renderedAt, p.isLast, p.event = now, over, eventOf(p.body)
		p.stateCount++
	}
	return p.title, p.body, p.event, p.stateCount, p.isLast
}

// eventOf formats a text as a message of server-sent events, with a line of data for each of its lines.
func eventOf(text string) []byte {
	var b bytes.Buffer
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// servePage sends the page as it is now. Without script the page does not change, and a note says so.
func (p *Page) servePage(w http.ResponseWriter, _ *http.Request) {
	title, body, _, _, last := p.currentState()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	noScriptNote, link := `<noscript><p class="note">Without script this page stands still: <a href="/">load it again</a>.</p></noscript>`, ""
	if last {
		noScriptNote = ""
	}
	if p.cfg.Report != nil {
		link = `<a href="report.html">The whole report, as one file</a>`
	}
	if p.cfg.Timeline != nil {
		link = strings.TrimPrefix(link+`, <a href="timeline.jsonl">the timeline, for programs</a>`, ", ")
	}
	if link != "" {
		link = `<p class="sub">` + link + "</p>"
	}
	fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`+
		`<link rel="icon" href="data:,"><link rel="stylesheet" href="live.css"><script src="live.js" defer></script><script src="pointer.js" defer></script><title>%s</title></head><body><main>`+
		"\n%s<p id=\"said\" class=\"note\" role=\"status\"></p><p id=\"told\" role=\"status\"></p>\n<div id=\"live\">\n%s</div>\n%s</main></body></html>\n", html.EscapeString(title), noScriptNote, body, link)
}

// serveEvents sends states until the subject ends or the viewer leaves. When too many look, it says so instead.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Connection", "close") // its deadline would cut a later answer, such as the report after the end
	out := http.NewResponseController(w)
	send := func(text []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeWait)) // without one the server's end cuts a slow viewer
		_, err := w.Write(text)
		return err == nil && out.Flush() == nil
	}
	select {
	case p.viewers <- struct{}{}:
		defer func() { <-p.viewers }()
	default:
		send(fmt.Appendf(nil, "event: full\ndata: %d others look at this page, and it serves no more: it stands still. Load it again later.\n\n", MaxViewers))
		return
	}
	ticker := p.cfg.Clock.NewTicker(Every)
	defer ticker.Stop()
	for sent := 0; ; {
		_, _, event, count, last := p.currentState()
		if count != sent && !send(event) {
			return
		}
		if sent = count; last {
			send([]byte("event: end\ndata: over\n\n"))
			return
		}
		select {
		case <-ticker.Chan():
		case <-p.ended:
		case <-r.Context().Done():
			return
		}
	}
}

// serveTimeline sends the timeline line by line. A reader on another machine gets no examples of failures.
func (p *Page) serveTimeline(w http.ResponseWriter, r *http.Request) {
	select {
	case p.readers <- struct{}{}:
		defer func() { <-p.readers }()
	default:
		http.Error(w, fmt.Sprintf("headrace: %d timelines are being sent: ask again", maxTimelines), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
	w.Header().Set("Connection", "close") // as of events
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timelineWait))
	counted := &counter{to: w}
	out := bufio.NewWriterSize(counted, 32<<10)
	err := p.cfg.Timeline(out, !exposition.IsFromHere(r))
	if err != nil && counted.n == 0 {
		http.Error(w, "headrace: there is no timeline: "+err.Error(), http.StatusNotFound)
		return
	}
	_ = out.Flush() // a reader that has gone is nobody's fault
}

// counter counts the bytes that it passes on.
type counter struct {
	to io.Writer
	n  int
}

func (c *counter) Write(text []byte) (int, error) {
	n, err := c.to.Write(text)
	c.n += n
	return n, err
}

// serveReport makes and sends the whole report, to this machine only, as it has examples of failures. It makes one at
// a time, as each reads all results.
func (p *Page) serveReport(w http.ResponseWriter, r *http.Request) {
	if !exposition.IsFromHere(r) {
		http.Error(w, "headrace: the report quotes prompts, and is for this machine only: run headrace report there", http.StatusForbidden)
		return
	}
	if !p.reporting.TryLock() {
		http.Error(w, "headrace: a report is being made: ask again", http.StatusServiceUnavailable)
		return
	}
	defer p.reporting.Unlock()
	text, err := p.cfg.Report()
	if err != nil {
		http.Error(w, "headrace: there is no report: "+err.Error(), http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'") // as the report says itself
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text) // a reader that has gone is nobody's fault
}
