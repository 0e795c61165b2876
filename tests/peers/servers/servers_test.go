package servers

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const path = "/chat/completions"

// ask makes one call and answers with its status, header and body.
func ask(t *testing.T, p *Peer) (int, http.Header, string) {
	t.Helper()
	resp, err := http.Post(p.URL+path, "application/json", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		t.Error(err)
		return 0, nil, ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(body)
}

func stand(t *testing.T, start Start) *Peer {
	t.Helper()
	p, err := start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// together makes so many calls at once and returns what was counted.
func together(t *testing.T, p *Peer, calls int) Tally {
	t.Helper()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { ask(t, p) })
	}
	all.Wait()
	return counted(t, p, calls)
}

// counted waits for the last of the calls: nginx counts a moment after it has answered.
func counted(t *testing.T, p *Peer, calls int) (got Tally) {
	t.Helper()
	for t.Context().Err() == nil {
		var err error
		if got, err = p.Tally(); err != nil {
			t.Fatal(err)
		}
		if got.Answered+got.Refused+got.Faults >= int64(calls) {
			break
		}
		runtime.Gosched()
	}
	return got
}

// long enough that calls which leave at once are all in flight at the same time, on
// a busy machine too.
const long = 300 * time.Millisecond

func TestWhatLeavesAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		start Start
		want  Tally
	}{
		"at most 3":           {AtMost(3, long), Tally{Answered: 3, Refused: 5}},
		"bucket of 3":         {Bucket{PerMinute: 1, Saved: 3}.Start(), Tally{Answered: 3, Refused: 5}},
		"always by chance":    {Chance{Refused: 1}.Start(), Tally{Refused: 8}},
		"always a fault":      {Chance{Faults: 1}.Start(), Tally{Faults: 8}},
		"throttled, burst 2":  {GCRA(1, 2, 0), Tally{Answered: 3, Refused: 5}},
		"chi Throttle(3)":     {Throttle(3, long), Tally{Answered: 3, Refused: 5}},
		"httprate, 3 an hour": {SlidingWindow(3, time.Hour, 0), Tally{Answered: 3, Refused: 5}},
		"ulule, 3 an hour":    {FixedWindow(3, time.Hour, 0), Tally{Answered: 3, Refused: 5}},
		"llm-d, queue full":   {LLMD{MaxNumSeqs: 2, MaxWaitingQueueLength: 1, TimeToFirstToken: long}.Start(), Tally{Answered: 3, Refused: 5}},
		"llm-d, injected":     {LLMD{MaxNumSeqs: 1, FailureInjectionRate: 100}.Start(), Tally{Refused: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := together(t, stand(t, c.start), 8); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBucketSaysItsLimit(t *testing.T) {
	p := stand(t, Bucket{PerMinute: 120, Saved: 1, Headers: true}.Start())
	status, h, _ := ask(t, p)
	if status != 200 || h.Get("x-ratelimit-limit-requests") != "120" || h.Get("x-ratelimit-remaining-requests") != "0" || h.Get("x-ratelimit-reset-requests") != "500ms" {
		t.Errorf("got %d, %v", status, h)
	}
	status, _, body := ask(t, p)
	if status != 429 || !strings.Contains(body, "Limit 120, Used 120, Requested 1. Please try again in ") {
		t.Errorf("got %d, %s", status, body)
	}
}

func TestChanceSaysWhatItIsTold(t *testing.T) {
	p := stand(t, Chance{Refused: 1, Header: http.Header{"Retry-After": {"-5"}}}.Start())
	if status, h, _ := ask(t, p); status != 429 || h.Get("Retry-After") != "-5" {
		t.Errorf("got %d, %v", status, h)
	}
}

// A server that is started again has forgotten the run before.
func TestStartsAfresh(t *testing.T) {
	for name, start := range map[string]Start{
		"bucket": Bucket{PerMinute: 1, Saved: 3}.Start(),
		"ulule":  FixedWindow(3, time.Hour, 0),
	} {
		for range 2 {
			if got, want := together(t, stand(t, start), 4), (Tally{Answered: 3, Refused: 1}); got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		}
	}
}

const threeAMinute = "\tstick-table type ip size 10 expire 60s store http_req_rate(60s)\n" +
	"\thttp-request track-sc0 src\n\thttp-request deny deny_status 503 if { sc_http_req_rate(0) gt 3 }"

// What others wrote counts as we do, where it is installed.
func TestProcessesCount(t *testing.T) {
	for name, start := range map[string]Start{
		"nginx":   Nginx{Limit: "limit_conn conn 3;", Latency: long}.Start(),
		"haproxy": HAProxy{Rules: threeAMinute, Latency: long}.Start(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := find(name); err != nil {
				t.Skip(err)
			}
			got := together(t, stand(t, start), 8)
			if want := (Tally{Answered: 3, Refused: 5}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
