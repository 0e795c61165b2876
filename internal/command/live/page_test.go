package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a page with a server and a clock that the test moves.
type stage struct {
	*Page
	t        *testing.T
	server   *httptest.Server
	clock    *clockwork.FakeClock
	rendered atomic.Int64
}

func newStage(t *testing.T, report func() ([]byte, error)) *stage {
	return newStageWith(t, report, nil)
}

func newStageWith(t *testing.T, report func() ([]byte, error), lines func(io.Writer, bool) error) *stage {
	s := &stage{t: t, clock: clockwork.NewFakeClock()}
	s.Page = New(Config{Clock: s.clock, Report: report, Timeline: lines, Render: func() (title, body string) {
		n := s.rendered.Add(1)
		return fmt.Sprintf("state %d <", n), fmt.Sprintf("<h1>state %d</h1>\n<p>two lines</p>\n", n)
	}})
	mux := http.NewServeMux()
	s.Register(mux)
	s.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.End()
		s.server.Close()
	})
	return s
}

func (s *stage) get(path string) (*http.Response, string) {
	s.t.Helper()
	req := must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, s.server.URL+path, nil))(s.t)
	req.Close = true
	resp := must.Get(http.DefaultClient.Do(req))(s.t)
	defer resp.Body.Close()
	return resp, string(must.Get(io.ReadAll(resp.Body))(s.t))
}

// viewer is a stream that is open.
type viewer struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Scanner
}

func (s *stage) look() *viewer {
	s.t.Helper()
	req := must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, s.server.URL+"/events", nil))(s.t)
	resp := must.Get(http.DefaultClient.Do(req))(s.t)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return &viewer{s.t, resp.Body, bufio.NewScanner(resp.Body)}
}

// next returns the next event: its lines.
func (v *viewer) next() string {
	v.t.Helper()
	var lines []string
	for v.in.Scan() {
		if v.in.Text() == "" {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, v.in.Text())
	}
	v.t.Fatalf("the stream has ended: %v", v.in.Err())
	return ""
}

// A page is whole without script, loads only what its own server has, and forbids all else.
func TestWholePage(t *testing.T) {
	s := newStage(t, nil)
	resp, text := s.get("/")
	for _, part := range []string{"<title>state 1 &lt;</title>", "<h1>state 1</h1>", "<noscript>", "load it again", `<div id="live">`} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	if strings.Contains(text, "report.html") || strings.Contains(text, "timeline.jsonl") || regexp.MustCompile(`https?://|style="|onload|<script>`).MatchString(text) {
		t.Error(text)
	}
	policy := resp.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:;") || strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	for path, kind := range map[string]string{"/live.js": "text/javascript; charset=utf-8", "/pointer.js": "text/javascript; charset=utf-8", "/live.css": "text/css; charset=utf-8"} {
		resp, text := s.get(path)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != kind || regexp.MustCompile(`https?://|@import|url\(`).MatchString(text) || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v %s", path, resp.Header, text)
		}
	}
	resp = must.Get(http.DefaultClient.Do(must.Get(http.NewRequestWithContext(context.Background(), http.MethodPost, s.server.URL+"/", nil))(t)))(t)
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Error(resp.Status)
	}
}

// All viewers get a state that was rendered once; the last one says so, and ends the stream.
func TestStatesAreRenderedOnceForAll(t *testing.T) {
	s := newStage(t, nil)
	a, b := s.look(), s.look()
	for _, v := range []*viewer{a, b} {
		if got := v.next(); got != "data: <h1>state 1</h1>\ndata: <p>two lines</p>" {
			t.Fatal(got)
		}
	}
	must.Do(t, s.clock.BlockUntilContext(context.Background(), 2))
	s.clock.Advance(Every)
	for _, v := range []*viewer{a, b} {
		if got := v.next(); !strings.Contains(got, "state 2") {
			t.Fatal(got)
		}
	}
	s.End()
	s.End()
	for _, v := range []*viewer{a, b} {
		if got, end := v.next(), v.next(); !strings.Contains(got, "state 3") || end != "event: end\ndata: over" || v.in.Scan() {
			t.Errorf("%s, then %s", got, end)
		}
	}
	if _, text := s.get("/"); !strings.Contains(text, "state 3") || strings.Contains(text, "<noscript>") {
		t.Errorf("after the end: %s", text)
	}
	if late := s.look(); !strings.Contains(late.next(), "state 3") || late.next() != "event: end\ndata: over" {
		t.Error("a viewer after the end does not get the last state")
	}
	conn := must.Get(net.Dial("tcp", s.server.Listener.Addr().String()))(t)
	defer func() { must.Do(t, conn.Close()) }()
	must.Get(conn.Write([]byte("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")))(t)
	must.Do(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection stays, with the deadline of its stream: %v", err)
	}
}

// Nothing is rendered while nobody looks.
func TestNobodyLooks(t *testing.T) {
	s := newStage(t, nil)
	v := s.look()
	v.next()
	must.Do(t, v.body.Close())
	for len(s.viewers) > 0 { // until its handler has seen that
		time.Sleep(time.Millisecond)
	}
	s.clock.Advance(time.Hour)
	if n := s.rendered.Load(); n != 1 {
		t.Errorf("%d states", n)
	}
}

// One viewer more than there are places gets a message instead, and a place that is left is free.
func TestViewersAreBounded(t *testing.T) {
	s := newStage(t, nil)
	var all []*viewer
	for range MaxViewers {
		v := s.look()
		v.next()
		all = append(all, v)
	}
	if got := s.look().next(); !strings.HasPrefix(got, "event: full\ndata: 16 others look") {
		t.Error(got)
	}
	must.Do(t, all[0].body.Close())
	for len(s.viewers) == MaxViewers {
		time.Sleep(time.Millisecond)
	}
	if got := s.look().next(); !strings.HasPrefix(got, "data: ") {
		t.Error(got)
	}
}

// The whole report is made one at a time, and its fault is said.
func TestReport(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := newStage(t, func() ([]byte, error) {
		began <- struct{}{}
		<-goOn
		return []byte("<p>all"), nil
	})
	if _, text := s.get("/"); !strings.Contains(text, `href="report.html"`) {
		t.Error(text)
	}
	first := make(chan string)
	go func() {
		_, text := s.get("/report.html")
		first <- text
	}()
	<-began
	if resp, text := s.get("/report.html"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Error(text)
	}
	close(goOn)
	if text := <-first; text != "<p>all" {
		t.Error(text)
	}
	s = newStage(t, func() ([]byte, error) { return nil, errors.New("no file") })
	if resp, text := s.get("/report.html"); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "no file") {
		t.Error(text)
	}
	for _, far := range [][2]string{{"192.0.2.1:5", "localhost:9500"}, {"127.0.0.1:5", "evil.example:9500"}} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/report.html", nil)
		r.RemoteAddr, r.Host = far[0], far[1]
		w := httptest.NewRecorder()
		if s.serveReport(w, r); w.Code != http.StatusForbidden {
			t.Errorf("%v, another machine or its page, gets it: %d", far, w.Code)
		}
	}
}

// The timeline is sent line by line to a few readers at once, and bare to other machines; a fault before its first line is said.
func TestTimeline(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := newStageWith(t, nil, func(to io.Writer, bare bool) error {
		fmt.Fprintf(to, "bare is %v\n", bare)
		began <- struct{}{}
		<-goOn
		return nil
	})
	if _, text := s.get("/"); !strings.Contains(text, `href="timeline.jsonl"`) {
		t.Error(text)
	}
	texts := make(chan string)
	for range maxTimelines {
		go func() {
			resp, text := s.get("/timeline.jsonl")
			texts <- resp.Header.Get("Content-Type") + ": " + text
		}()
	}
	for range maxTimelines {
		<-began
	}
	if resp, text := s.get("/timeline.jsonl"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %s", text)
	}
	close(goOn)
	for range maxTimelines {
		if text := <-texts; text != "application/jsonl; charset=utf-8: bare is false\n" {
			t.Error(text)
		}
	}
	go func() {
		for range 2 {
			<-began
		}
	}()
	for _, far := range [][2]string{{"192.0.2.1:5", "localhost:9500"}, {"127.0.0.1:5", "evil.example:9500"}} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/timeline.jsonl", nil)
		r.RemoteAddr, r.Host = far[0], far[1]
		w := httptest.NewRecorder()
		if s.serveTimeline(w, r); w.Body.String() != "bare is true\n" {
			t.Errorf("%v: %s", far, w.Body)
		}
	}
	s = newStageWith(t, nil, func(io.Writer, bool) error { return errors.New("no file") })
	if resp, text := s.get("/timeline.jsonl"); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "there is no timeline: no file") {
		t.Error(text)
	}
}
