//go:build unix

package tests

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
)

// moodyLatency is the time that a moody server takes to answer.
const moodyLatency = 10 * time.Millisecond

// A moody server answers each row with the row's own name, but spoils some rows. It shares
// no code with the simulated provider.
type moody struct {
	address string
	server  *http.Server
	over    chan struct{} // closed when the server has ended

	mu     sync.Mutex
	spoils func(row string, before int) bool // by the row and how many calls came before, all together
	spoil  http.HandlerFunc                  // answers the rows that are spoiled; the path value "row" names one
	calls  map[string]int                    // by row
	total  int
	alarm  int // the total that closes ring
	holds  int // spoiled calls from this total on get no answer; less than 0: each gets one
	ring   chan struct{}
}

// newMoody starts a server. A nil spoil spoils nothing.
func newMoody(spoils func(row string, before int) bool, spoil http.HandlerFunc) (*moody, error) {
	s := &moody{spoils: spoils, spoil: spoil, calls: map[string]int{}, holds: -1, address: "127.0.0.1:0"}
	return s, s.up()
}

// up listens, at the same address each time.
func (s *moody) up() error {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.address, s.server, s.over = l.Addr().String(), &http.Server{Handler: s}, make(chan struct{})
	go func() {
		defer close(s.over)
		_ = s.server.Serve(l)
	}()
	return nil
}

// down closes the port and all connections.
func (s *moody) down() {
	_ = s.server.Close()
	<-s.over
}

func (s *moody) base() string { return "http://" + s.address + "/v1" }

var rowName = regexp.MustCompile(`row-\d{4}`)

func (s *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	row := rowName.FindString(string(body))
	if err != nil || row == "" { // the caller was killed while it sent
		return
	}
	r.SetPathValue("row", row)
	spoil := s.note(row)
	time.Sleep(moodyLatency) // as a provider takes its time
	if spoil != nil {
		spoil(w, r)
		return
	}
	replies(200, "application/json", fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}`, "answer to "+row))(w, r)
}

// note counts a call, and gives what answers it if it is spoiled.
func (s *moody) note(row string) (spoil http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spoils != nil && s.spoils(row, s.total) {
		if spoil = s.spoil; s.holds >= 0 && s.total >= s.holds {
			spoil = hangs
		}
	}
	s.calls[row]++
	if s.total++; s.ring != nil && s.total >= s.alarm {
		close(s.ring)
		s.ring = nil
	}
	return spoil
}

// spoilsNow changes which rows are spoiled, and how. Nil heals the server.
func (s *moody) spoilsNow(spoils func(row string, before int) bool, spoil http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoils, s.spoil = spoils, spoil
}

// holdsFrom has spoiled calls hang until their caller leaves, from that total on. Less than 0
// ends that.
func (s *moody) holdsFrom(total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = total
}

// after gives a channel that closes when n more calls have arrived.
func (s *moody) after(n int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	ring := make(chan struct{})
	s.ring, s.alarm = ring, s.total+n
	return ring
}

// counted returns the number of calls of each row, and of all.
func (s *moody) counted() (calls map[string]int, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls), s.total
}

// wasAsked reports whether a row was.
func (s *moody) wasAsked(row string) bool {
	calls, _ := s.counted()
	return calls[row] > 0
}

// replies answers with these words.
func replies(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// says answers with JSON.
func says(status int, body string) http.HandlerFunc { return replies(status, "application/json", body) }

// resets breaks the connection without a word.
func resets(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// hangs answers nothing until the caller leaves.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// A play is one output of the command on its way through processes, at a moody server.
// One goroutine performs it and notes its faults; the test that reports them waits for over.
type play struct {
	name          string
	rows          int
	server        *moody
	bin           string
	args, env     []string
	out, failures string
	ctx           context.Context

	signal os.Signal // ends a process in the middle; nil kills it
	hears  heard     // standard error of the present process
	said   []string  // standard error of each process
	over   chan struct{}

	mu     sync.Mutex
	faults []string
}

// newPlay writes the prompt file. The play's server and its context end with the test.
func newPlay(t *testing.T, bin, name string, rows int, server *moody, args ...string) *play {
	t.Helper()
	dir := t.TempDir()
	p := &play{
		name: name, rows: rows, server: server, bin: bin, ctx: t.Context(), over: make(chan struct{}),
		out: filepath.Join(dir, "out.jsonl"), failures: filepath.Join(dir, "out.errors.jsonl"),
	}
	var text strings.Builder
	for i := 1; i <= rows; i++ {
		fmt.Fprintf(&text, `{"id":%q,"prompt":"What is %s?"}`+"\n", row(i), row(i))
	}
	in := filepath.Join(dir, "in.jsonl")
	must.Do(t, os.WriteFile(in, []byte(text.String()), 0o600))
	t.Cleanup(server.down)
	p.args = append([]string{"run", in, "-o", p.out, "--base-url", server.base(), "--model", "m", "--progress", "plain", "--api-key-env", "A_KEY"}, args...)
	p.env = append(os.Environ(), "A_KEY=sk-scene", "NO_PROXY=127.0.0.1")
	return p
}

// heard collects what a process says, for others to wait for.
type heard struct {
	mu    sync.Mutex
	text  strings.Builder
	after []awaited
}

// awaited closes met once a pattern was said so often.
type awaited struct {
	pattern *regexp.Regexp
	times   int
	met     chan struct{}
}

func (h *heard) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Reset()
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func (h *heard) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(text)
	h.after = slices.DeleteFunc(h.after, func(a awaited) bool {
		met := len(a.pattern.FindAllStringIndex(h.text.String(), a.times)) == a.times
		if met {
			close(a.met)
		}
		return met
	})
	return len(text), nil
}

// says gives a channel that closes once the next process has said that so often.
func (h *heard) says(pattern string, times int) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := awaited{regexp.MustCompile(pattern), times, make(chan struct{})}
	h.after = append(h.after, a)
	return a.met
}

func row(i int) string { return fmt.Sprintf("row-%04d", i) }

// everyRow are all rows of the play.
func (p *play) everyRow() (rows []string) {
	for i := 1; i <= p.rows; i++ {
		rows = append(rows, row(i))
	}
	return rows
}

func (p *play) faultf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// begin performs the play in a goroutine of its own. Many plays run at once, for they
// mostly wait.
func (p *play) begin(perform func(*play)) *play {
	go func() {
		defer close(p.over)
		perform(p)
	}()
	return p
}

// report waits for the end of each play, and tells its faults in a test of its own.
func report(t *testing.T, plays []*play) {
	t.Helper()
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			<-p.over
			for _, fault := range p.faults[:min(len(p.faults), mostFaults)] {
				t.Error(fault)
			}
			if more := len(p.faults) - mostFaults; more > 0 {
				t.Errorf("and %d faults more", more)
			}
			if t.Failed() || testing.Verbose() {
				for i, said := range p.said {
					t.Logf("process %d said:\n%s", i+1, lastLines(said, 12))
				}
			}
		})
	}
}

// mostFaults is the number of faults of a play that are reported.
const mostFaults = 15

// lastLines are the last lines of a text, none of them long.
func lastLines(text string, n int) string {
	const most = 400
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), most)]
	}
	return strings.Join(lines, "\n")
}

// mostOfAScene is the time after which a process that hangs is ended.
const mostOfAScene = 4 * time.Minute

// killed is the exit code of a process that was killed.
const killed = -1

// process runs the command to its end, or until kill closes. It gives the exit code.
func (p *play) process(kill <-chan struct{}, more ...string) (code int) {
	ctx, cancel := context.WithTimeout(p.ctx, mostOfAScene)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.bin, append(slices.Clone(p.args), more...)...)
	cmd.Env = p.env
	stderr := &p.hears
	stderr.reset()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		p.faultf("%v", err)
		return killed
	}
	gone, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-kill:
			_ = cmd.Process.Signal(cmp.Or[os.Signal](p.signal, os.Kill))
		case <-gone:
		}
	}()
	_ = cmd.Wait()
	close(gone)
	<-done
	if ctx.Err() != nil {
		p.faultf("process %d has not ended in %v", len(p.said)+1, mostOfAScene)
	}
	p.said = append(p.said, stderr.String())
	return cmd.ProcessState.ExitCode()
}

// ends runs the command to its end, and notes a fault if that is another one.
func (p *play) ends(code int, more ...string) {
	if got := p.process(nil, more...); got != code {
		p.faultf("process %d ended with exit code %d, want %d", len(p.said), got, code)
	}
}

// endsAs is ends, during which something else happens. It is given a channel that closes with
// the end of the process.
func (p *play) endsAs(code int, meanwhile func(ended <-chan struct{}), more ...string) {
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		meanwhile(ended)
	}()
	p.ends(code, more...)
	close(ended)
	<-over
}

// comes waits for something, and reports whether it came before the end.
func comes(something, end <-chan struct{}) bool {
	select {
	case <-something:
		return true
	case <-end:
		return false
	}
}

// isKilled runs the command until kill closes, and notes a fault if it ended before.
func (p *play) isKilled(kill <-chan struct{}, more ...string) {
	if got := p.process(kill, more...); got != killed {
		p.faultf("process %d ended with exit code %d before it was killed", len(p.said), got)
	}
}

// hasSaid notes a fault for each pattern that the latest process has not said.
func (p *play) hasSaid(patterns ...string) {
	for _, pattern := range patterns {
		if said := p.said[len(p.said)-1]; !regexp.MustCompile("(?m)" + pattern).MatchString(said) {
			p.faultf("process %d has not said %q", len(p.said), pattern)
		}
	}
}

// hasNotSaid notes a fault if the latest process has said that.
func (p *play) hasNotSaid(pattern string) {
	if said := regexp.MustCompile("(?m)^.*" + pattern + ".*$").FindString(p.said[len(p.said)-1]); said != "" {
		p.faultf("process %d has said: %s", len(p.said), said)
	}
}

// sceneLine holds the fields of a line that the scenes look at, in an output or an errors
// file.
type sceneLine struct {
	CustomID string `json:"custom_id"`
	Response *struct{ Body json.RawMessage }
	Error    *struct{ Code, Message string }
	Headrace struct {
		Calls    int
		Filtered bool
		Failures []journal.CallFailure
	}
}

// answers reports whether the line holds the row's own answer.
func (l *sceneLine) answers(row string) bool {
	return l.Response != nil && bytes.Contains(l.Response.Body, []byte(`"answer to `+row+`"`))
}

// lines are those of a file by row. A row that stands twice is a fault.
func (p *play) lines(path string) map[string]sceneLine {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		p.faultf("%v", err)
	}
	all := map[string]sceneLine{}
	for line := range bytes.Lines(text) {
		var l sceneLine
		if err := json.Unmarshal(line, &l); err != nil {
			p.faultf("%s: %v: %s", filepath.Base(path), err, line)
			continue
		}
		if _, twice := all[l.CustomID]; twice {
			p.faultf("%s has two lines in %s", l.CustomID, filepath.Base(path))
		}
		all[l.CustomID] = l
	}
	return all
}

// answered checks that the output has exactly these rows, each with its own answer.
func (p *play) answered(rows []string) {
	lines := p.lines(p.out)
	for _, row := range rows {
		l, is := lines[row]
		switch {
		case !is:
			p.faultf("%s was not answered", row)
		case !l.answers(row):
			p.faultf("%s has not its own answer: %+v", row, l)
		}
	}
	if len(lines) != len(rows) {
		p.faultf("the output has %d rows, want %d", len(lines), len(rows))
	}
}

// failed checks that the errors file has exactly these rows, each with its calls, and gives
// the lines.
func (p *play) failed(rows []string) map[string]sceneLine {
	lines := p.lines(p.failures)
	for _, row := range rows {
		l, is := lines[row]
		if !is {
			p.faultf("%s is not in the errors file", row)
			continue
		}
		reported := 0
		for _, f := range l.Headrace.Failures {
			if reported += f.Calls; f.Kind == "" || f.Message == "" {
				p.faultf("%s: a failure without words: %+v", row, f)
			}
		}
		if l.Error == nil || l.Error.Code == "" || l.Headrace.Calls < 1 || reported != l.Headrace.Calls {
			p.faultf("%s: %d calls, of which the failures tell %d: %+v", row, l.Headrace.Calls, reported, l)
		}
	}
	if len(lines) != len(rows) {
		p.faultf("the errors file has %d rows, want %d", len(lines), len(rows))
	}
	return lines
}
