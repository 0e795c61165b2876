package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Three servers of three dialects share a run's items. One of them grants half of what the others
// do; another is killed at 30 % of the items and rises at 60 %. Each item has one result, no item
// is answered twice but one whose call the kill cut, and the run takes at most 1.1 times as long
// as the limits of the servers that were up allow.
func TestServerIsKilledAndRises(t *testing.T) {
	t.Parallel() // it mostly waits
	items, perSecond := 20_000, 320.0
	if testing.Short() {
		items, perSecond = 2_000, 48
	}
	books := newLedger(items*3/10, items*6/10)
	server := func(dialect string, rate float64) *mortal {
		return newMortal(t, books, rate, "--dialect", dialect, "--latency", "50ms", "--sigma", "0.3", "--retry-after", "always")
	}
	killed, other, half := server("openai", perSecond), server("anthropic", perSecond), server("gemini", perSecond/2)
	// The windows are so large that a busy machine, where calls take longer, can fill the limits.
	config := "lanes:\n"
	for name, m := range map[string]*mortal{"openai": killed, "anthropic": other, "gemini": half} {
		config += fmt.Sprintf("  %s: {provider: %[1]s, base-url: %q, api-key-env: A_KEY, concurrency: 256, rpm: %v, burst: %v}\n", name, m.base, m.rate*60, mortalBurst)
	}
	stop := books.at(items*3/10, killed.kill, items*6/10, killed.rise)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	runLanes(t, 0, map[string]string{"A_KEY": "the-key-of-all-lanes-123"}, somePrompts(t, items, "m"), "-o", out, "--config", lanesFile(t, config))
	stop()
	checkResults(t, out, items)
	books.check(t, items)
	if len(killed.spans) != 2 {
		t.Fatalf("the server was up %d times", len(killed.spans))
	}
	took, ideal := books.last.Sub(books.first), books.ideal(items, killed, other, half)
	ratio := took.Seconds() / ideal.Seconds()
	down, up := killed.spans[0].to.Sub(books.first), killed.spans[1].from.Sub(books.first)
	t.Logf("%d items in %.2f s, %.3f times the ideal; down from %.2f s to %.2f s; %d calls were cut, %d answers twice", items, took.Seconds(), ratio, down.Seconds(), up.Seconds(), len(books.cut), books.total-items)
	if ratio <= 1.1 {
		return
	}
	if bare := bareRatio(t, killed.rate, other.rate, half.rate); ratio > 1.1*bare {
		t.Errorf("the run took %.3f times as long as the limits allow, and a bare loop %.3f times", ratio, bare)
	}
}

// bareRatio has bare loops use limits, and returns how much less they reach than these grant. On a
// machine with much else to do that is more than 1.
func bareRatio(t *testing.T, rates ...float64) float64 {
	t.Helper()
	const long = 3 * time.Second
	books, answers, could := newLedger(), atomic.Int64{}, 0.0
	var loops sync.WaitGroup
	begin := time.Now()
	for _, rate := range rates {
		m := newMortal(t, books, rate, "--latency", "50ms", "--sigma", "0.3")
		could += rate * long.Seconds()
		turns := make(chan int)
		loops.Go(func() {
			defer close(turns)
			for i := range int(rate * long.Seconds()) {
				time.Sleep(time.Until(begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
				turns <- i
			}
		})
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
		t.Cleanup(client.CloseIdleConnections)
		for range 256 {
			loops.Go(func() {
				for i := range turns {
					body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"What is %d times two?"}]}`, i)
					resp, err := client.Post(m.base+"/chat/completions", "application/json", strings.NewReader(body))
					if err != nil {
						t.Error(err)
						continue
					}
					if _, err := io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode == http.StatusOK {
						answers.Add(1)
					}
					_ = resp.Body.Close() // it was read
				}
			})
		}
	}
	loops.Wait()
	return max(1, could/float64(max(1, answers.Load()))*max(1, time.Since(begin).Seconds()/long.Seconds()))
}

// checkResults fails the test unless each of the items has one result, its own.
func checkResults(t *testing.T, out string, items int) {
	t.Helper()
	have := map[string]int{}
	for _, l := range resultsOf(t, out) {
		have[l.CustomID]++
		if want := sim.Answer("What is " + strings.TrimPrefix(l.CustomID, "p") + " times two?"); !bytes.Contains(l.Response.Body, []byte(want)) {
			t.Errorf("%s: %s, want %q", l.CustomID, l.Response.Body, want)
		}
	}
	for i := range items {
		if n := have[fmt.Sprintf("p%d", i)]; n != 1 {
			t.Errorf("item %d has %d results", i, n)
		}
	}
	if len(have) != items {
		t.Errorf("%d items have results, want %d", len(have), items)
	}
}

// ledger follows the items of a run at all its servers. So it sees an item that two servers
// answer, which the books of neither can show.
type ledger struct {
	mu          sync.Mutex
	answers     map[int]int // by item
	inFlight    map[int]int // calls, by item
	cutting     bool        // a server is being killed
	cut         map[int]bool
	total       int       // answers
	first, last time.Time // the first call came, the latest answer left
	marks       map[int]chan struct{}
}

func newLedger(marks ...int) *ledger {
	l := &ledger{answers: map[int]int{}, inFlight: map[int]int{}, cut: map[int]bool{}, marks: map[int]chan struct{}{}}
	for _, n := range marks {
		l.marks[n] = make(chan struct{})
	}
	return l
}

// at calls first after n answers and then second after m of them. stop waits for their end.
func (l *ledger) at(n int, first func(), m int, second func()) (stop func()) {
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for _, then := range []struct {
			after int
			do    func()
		}{{n, first}, {m, second}} {
			select {
			case <-l.marks[then.after]:
				then.do()
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended); <-over }
}

func (l *ledger) enter(item int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		l.first = time.Now()
	}
	l.inFlight[item]++
	if l.cutting {
		l.cut[item] = true
	}
}

func (l *ledger) leave(item int, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[item]--; l.inFlight[item] == 0 {
		delete(l.inFlight, item)
	}
	if !answered {
		return
	}
	l.answers[item]++
	l.total++
	l.last = time.Now()
	if mark := l.marks[l.total]; mark != nil {
		close(mark)
	}
}

// cuts notes the calls that are in flight when a kill begins, and those that come until it is over.
func (l *ledger) cuts(begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutting = begins
	for item := range l.inFlight {
		l.cut[item] = true
	}
}

// check fails the test unless each item was answered once, or again after its call was cut.
func (l *ledger) check(t *testing.T, items int) {
	t.Helper()
	for i := range items {
		if n := l.answers[i]; n != 1 && (n != 2 || !l.cut[i]) {
			t.Errorf("item %d was answered %d times; cut: %v", i, n, l.cut[i])
		}
	}
}

// ideal returns the shortest time in which the servers could have answered the items, given the
// times at which they were up.
func (l *ledger) ideal(items int, servers ...*mortal) time.Duration {
	least, most := time.Duration(0), time.Hour
	for most-least > time.Millisecond {
		middle, could := (least+most)/2, 0.0
		for _, m := range servers {
			could += m.could(l.first, l.first.Add(middle))
		}
		if could < float64(items) {
			least = middle
		} else {
			most = middle
		}
	}
	return most
}

// mortalBurst bounds the part of its limit that a server saves up. It bridges the pauses of a busy
// machine, and is little compared with a run.
const mortalBurst = 500 * time.Millisecond

// mortal serves a simulated provider of a known limit. Killed, it breaks all connections, and its
// address refuses others until it rises.
type mortal struct {
	t      *testing.T
	books  *ledger
	server *sim.Server
	rate   float64 // a second
	depth  float64
	base   string
	addr   string
	http   *http.Server
	over   chan error
	spans  []upSpan
}

// upSpan is a time in which a server was up; to is zero if it still is.
type upSpan struct{ from, to time.Time }

func newMortal(t *testing.T, books *ledger, perSecond float64, args ...string) *mortal {
	t.Helper()
	m := &mortal{t: t, books: books, rate: perSecond, depth: perSecond * mortalBurst.Seconds(), addr: "127.0.0.1:0"}
	var under string
	m.server, under = newSim(t, append(args, fmt.Sprintf("--rpm=%v", perSecond*60), fmt.Sprintf("--burst=%v", mortalBurst))...)
	m.rise()
	m.base = "http://" + m.addr + under
	t.Cleanup(func() {
		if m.spans[len(m.spans)-1].to.IsZero() {
			m.kill()
		}
	})
	return m
}

func (m *mortal) rise() {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", m.addr)
	if err != nil {
		m.t.Errorf("the server does not rise: %v", err)
		return
	}
	m.addr, m.http, m.over = listener.Addr().String(), &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}, make(chan error, 1)
	m.spans = append(m.spans, upSpan{from: time.Now()})
	go func() { m.over <- m.http.Serve(listener) }()
}

func (m *mortal) kill() {
	m.books.cuts(true)
	m.spans[len(m.spans)-1].to = time.Now()
	err := m.http.Close()
	if served := <-m.over; err != nil || !errors.Is(served, http.ErrServerClosed) {
		m.t.Errorf("%v, %v", err, served)
	}
	m.books.cuts(false)
}

// could returns the most answers that the server's limit allows in a stretch of time. Its gauge is
// full whenever it rises.
func (m *mortal) could(from, to time.Time) (n float64) {
	for _, s := range m.spans {
		begin, end := s.from, s.to
		if begin.Before(from) {
			begin = from
		}
		if end.IsZero() || end.After(to) {
			end = to
		}
		if end.After(begin) {
			n += m.depth + m.rate*end.Sub(begin).Seconds()
		}
	}
	return n
}

var askedFor = regexp.MustCompile(`What is (\d+) times two`)

// ServeHTTP notes whose item a call is, and whether an answer left whole.
func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the connection is broken: this call was not heard
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	found := askedFor.FindSubmatch(body)
	if found == nil {
		m.server.ServeHTTP(w, r)
		return
	}
	item, _ := strconv.Atoi(string(found[1]))
	m.books.enter(item)
	noted := &statusNoted{ResponseWriter: w}
	defer func() { m.books.leave(item, noted.status == http.StatusOK) }()
	m.server.ServeHTTP(noted, r)
	if noted.status == http.StatusOK { // else the connection may be gone
		_ = http.NewResponseController(w).Flush() // or the answer could be cut after it has left the books
	}
}

// statusNoted remembers the status of an answer.
type statusNoted struct {
	http.ResponseWriter
	status int
}

func (s *statusNoted) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusNoted) Unwrap() http.ResponseWriter { return s.ResponseWriter }
