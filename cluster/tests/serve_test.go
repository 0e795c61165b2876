//go:build linux

package tests

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A front is a headrace serve in the cluster of a fleet, and the client of a program that calls it.
type front struct {
	*process
	f      *fleet
	addr   string
	client *http.Client
}

// newFront starts a server that calls the judge under its name, and returns when requests may come.
func (f *fleet) newFront(name string, flags ...string) *front {
	f.t.Helper()
	s := &front{f: f, addr: freePort(f.t), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	f.t.Cleanup(s.client.CloseIdleConnections)
	args := []string{
		"serve", "--join", f.url(), "--store", f.store, "--base-url", f.judge.base(name), "--open", "--addr", s.addr,
		"-c", fmt.Sprint(f.plan.inFlight), "--progress", "plain", "--ack-wait", ackWait.String(), "--lease", f.term().String(),
	}
	s.process = f.process(name, append(args, flags...)...)
	s.start()
	for began := time.Now(); time.Since(began) < comeUp && s.running(); time.Sleep(20 * time.Millisecond) {
		if status, _, _ := s.get("/readyz"); status == http.StatusOK {
			return s
		}
	}
	f.t.Fatalf("%s does not serve", name)
	return nil
}

func (s *front) get(path string) (status int, text string, head http.Header) {
	return s.send(http.MethodGet, path, "", nil)
}

// asks sends a prompt in a class; the wait is what the answer says of the time until its call left.
func (s *front) asks(prompt, class string, head http.Header) (status int, wait time.Duration, text string) {
	if head == nil {
		head = http.Header{}
	}
	head.Set("X-Headrace-Priority", class)
	body := fmt.Sprintf(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":%q}]}`, prompt)
	status, text, said := s.send(http.MethodPost, "/v1/chat/completions", body, head)
	ms, _ := strconv.Atoi(said.Get("X-Headrace-Waited-Ms"))
	return status, time.Duration(ms) * time.Millisecond, text
}

func (s *front) send(method, path, body string, head http.Header) (status int, text string, said http.Header) {
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.addr+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err.Error(), nil
	}
	for name, values := range head {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body) // a text cut short fails what looks at it
	return resp.StatusCode, string(all), resp.Header
}

// answers asks n prompts at once, and returns the waits of those that were answered, the shortest first.
func (s *front) answers(n int, tag, class string) (waits []time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			status, wait, text := s.asks(fmt.Sprintf("%s %d", tag, i), class, nil)
			if status != http.StatusOK {
				s.t.Errorf("%s %d: %d %s", tag, i, status, text)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, wait)
		})
	}
	all.Wait()
	slices.Sort(waits)
	return waits
}

// rateOf returns the calls a second between the first and the last that the provider took.
func rateOf(book []call) float64 {
	return float64(len(book)-1) / book[len(book)-1].at.Sub(book[0].at).Seconds()
}

// A job of many items and the calls of interactive programs share one limit: all are answered, hardly one is refused, the
// limit is used, and the programs hardly wait, though the job would take all.
func TestAServerSharesALimitWithAJob(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 2, inFlight: 64, provider: strict(time.Second)})
	const seconds, perSecond = 20, 10
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "job", seconds*rate)
	customer, output := f.customer(q, "out")
	f.firstCall("job")
	s := f.newFront("serve", "--limit-name", "org", "--keeper", "never")
	ticker := time.NewTicker(time.Second / perSecond)
	defer ticker.Stop()
	var mu sync.Mutex
	var waits []time.Duration
	var calls sync.WaitGroup
	for i := range perSecond * seconds / 2 {
		<-ticker.C
		calls.Go(func() {
			status, wait, text := s.asks(fmt.Sprint("program ", i), "interactive", nil)
			if status != http.StatusOK {
				t.Errorf("call %d: %d %s", i, status, text)
			}
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, wait)
		})
	}
	calls.Wait()
	limits := f.says(s.addr, "limits", "ls")
	f.delivers(q, customer, output)
	book := settled(t, f.judge)
	refused := 0
	for _, c := range book {
		if c.refused() {
			refused++
		}
	}
	slices.Sort(waits)
	p95 := waits[len(waits)*95/100]
	used := rateOf(book) / rate
	t.Logf("%d calls, %d refused, %.3f of the limit used; %d calls of programs waited %v (median), %v (95 %%), %v at most", len(book), refused, used, len(waits), waits[len(waits)/2], p95, waits[len(waits)-1])
	stalled := f.late.bunched(rate)
	if refused > len(book)/100+stalled {
		t.Errorf("%d of %d calls are refused", refused, len(book))
	}
	if used < 0.9 && stalled == 0 {
		t.Errorf("%.3f of the limit is used", used)
	}
	if p95 > time.Second+f.late.allowance() {
		t.Errorf("of 20 calls one waits for %v or more", p95)
	}
	if !strings.Contains(limits, "SERVE") {
		t.Errorf("limits ls does not name the server:\n%s", limits)
	}
}

// Where there is no worker the server keeps the limits itself, and its programs use them. The status, the metrics and the
// hub's other servers name what it holds.
func TestServersAloneShareALimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{inFlight: 128, provider: strict(time.Second)})
	servers := []*front{f.newFront("s1", "--limit-name", "org"), f.newFront("s2", "--limit-name", "org", "--weight", "2")}
	const each = 8 * rate
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(func() {
			waits := s.answers(each, s.name, "normal")
			if len(waits) > 0 {
				t.Logf("%s: waits of %v (median), %v at most", s.name, waits[len(waits)/2], waits[len(waits)-1])
			}
		})
	}
	<-f.judge.after(2 * rate)
	begun := time.Now().Add(settling)
	<-f.judge.after(8 * rate)
	shared := time.Now()
	status, text, _ := servers[0].get("/headrace/status")
	if status != http.StatusOK || !strings.Contains(text, `"cluster":{"name":`) || !strings.Contains(text, `"others":1`) {
		t.Errorf("%d %s", status, text)
	}
	_, page, _ := servers[0].get("/metrics")
	for _, want := range []string{"headrace_serve_cluster_connected{hub=", "headrace_serve_cluster_keeper 1\n", "headrace_serve_cluster_share{lane=", "headrace_keeper "} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	all.Wait()
	book := settled(t, f.judge)
	share, calls := f.share("s2", begun, shared)
	refused := 0
	for _, c := range book {
		if c.refused() {
			refused++
		}
	}
	t.Logf("%d calls, %d refused; %.3f of %d calls are those of the server with weight 2 of 3; %.3f of the limit is used", len(book), refused, share, calls, rateOf(book)/rate)
	stalled := f.late.bunched(rate)
	if refused > len(book)/100+stalled {
		t.Errorf("%d of %d calls are refused", refused, len(book))
	}
	if stalled == 0 && (share < 0.6 || share > 0.73) {
		t.Errorf("share %.3f, want 0.667", share)
	}
	if used := rateOf(book[2*rate:]) / rate; used < 0.8 && stalled == 0 { // the beginning searches the limit, and in the end one server is alone
		t.Errorf("%.3f of the limit is used", used)
	}
	for _, s := range servers {
		s.signal(15)
		if code := s.ends(comeUp); code != 0 {
			t.Errorf("%s ends with %d", s.name, code)
		}
	}
}

// While the hub is away requests wait, no call leaves for longer than permits live, and one that cannot wait is refused.
// When it is back the others are answered.
func TestAServerWaitsForItsHub(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{inFlight: 64, provider: strict(time.Second)})
	s := f.newFront("s")
	s.answers(20, "before", "normal")
	away := time.Now()
	f.hubs[0].kill()
	time.Sleep(stops + f.late.allowance())
	before := f.judge.asked()
	waits := make(chan []time.Duration)
	go func() { waits <- s.answers(20, "during", "normal") }()
	status, _, text := s.asks("in haste", "interactive", http.Header{"X-Headrace-Max-Wait": {"1s"}})
	if status != http.StatusTooManyRequests || !strings.Contains(text, "headrace_wait_too_long") {
		t.Errorf("it waits for the hub: %d %s", status, text)
	}
	if n := f.judge.asked(); n != before {
		t.Errorf("%d calls leave %v after the hub's end", n-before, time.Since(away))
	}
	f.hubs[0].start()
	if n := len(<-waits); n != 20 {
		t.Errorf("%d of 20 requests are answered when the hub is back", n)
	}
	if s.signal(15); s.ends(comeUp) != 0 {
		t.Errorf("it ends with %d", s.code)
	}
}
