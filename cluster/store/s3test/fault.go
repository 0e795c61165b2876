package s3test

import (
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is the fate of a request.
type Fault int

// The faults; the zero value is none.
const (
	None       Fault = iota
	SlowDown         // 503 SlowDown; the server never hears of it
	Conflict         // 409 ConditionalRequestConflict; the server never hears of it
	LoseAsk          // the connection breaks before the server hears of it
	LoseAnswer       // the server does it, and the connection breaks before its answer
	FailAfter        // the server does it, and the answer is 500 InternalError
	Repeat           // the server gets it twice, as from a proxy that repeats, and the second answer counts
	Cut              // the connection breaks in the middle of the answer's body
	faultCount
)

// A Rule decides the fate of the n-th request, from 0. It may wait, to hold a request. Many
// goroutines call it.
type Rule func(n int, r *http.Request) Fault

// First does a fault to the first times requests that which selects.
func First(times int, fault Fault, which func(*http.Request) bool) Rule {
	var left atomic.Int64
	left.Store(int64(times))
	return func(_ int, r *http.Request) Fault {
		if which(r) && left.Add(-1) >= 0 {
			return fault
		}
		return None
	}
}

// Storm does one of the faults to a share of all requests, from 0 to 1, drawn from a seed.
func Storm(seed uint64, share float64, faults ...Fault) Rule {
	return func(n int, _ *http.Request) Fault {
		chance := rand.New(rand.NewPCG(seed, uint64(n)))
		if chance.Float64() >= share {
			return None
		}
		return faults[chance.IntN(len(faults))]
	}
}

// IsPut reports whether a request writes an object.
func IsPut(r *http.Request) bool { return r.Method == http.MethodPut }

// IsGet reports whether a request reads an object.
func IsGet(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Trim(r.URL.Path, "/") != Bucket
}

// IsList reports whether a request lists objects.
func IsList(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Trim(r.URL.Path, "/") == Bucket
}

// silent is the log of servers that would report a test's deliberate faults.
var silent = log.New(io.Discard, "", 0)

// faults is the part of the proxy that does the faults.
type faults struct {
	forward http.Handler
	rule    atomic.Pointer[Rule]
	asked   atomic.Int64
	done    [faultCount]atomic.Int64
	mu      sync.Mutex // the answers come at once
	created map[string]int
}

// noteCreated counts the writes that the server accepted, whether or not their writers learn of it.
func (f *faults) noteCreated(answer *http.Response) error {
	if IsPut(answer.Request) && answer.StatusCode == http.StatusOK {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.created == nil {
			f.created = map[string]int{}
		}
		f.created[strings.TrimPrefix(answer.Request.URL.Path, "/"+Bucket+"/")]++
	}
	return nil
}

// Created returns how often each object was written: more than once if the server let two writers win.
func (f *faults) Created() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.created)
}

// Fault sets a rule for the requests to come; nil is no rule.
func (f *faults) Fault(rule Rule) {
	if rule == nil {
		rule = func(int, *http.Request) Fault { return None }
	}
	f.rule.Store(&rule)
}

// Faults returns how often a fault was done.
func (f *faults) Faults(of Fault) int { return int(f.done[of].Load()) }

// Requests returns the number of requests.
func (f *faults) Requests() int { return int(f.asked.Load()) }

// ServeHTTP treats a request as the rule says.
func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(f.asked.Add(1)) - 1
	fault := None
	if rule := f.rule.Load(); rule != nil {
		fault = (*rule)(n, r)
	}
	f.done[fault].Add(1)
	f.do(fault, w, r)
}

// do does the fault to a request, or forwards the request.
func (f *faults) do(fault Fault, w http.ResponseWriter, r *http.Request) {
	switch fault {
	case SlowDown:
		refuse(w, r, http.StatusServiceUnavailable, "SlowDown")
	case Conflict:
		refuse(w, r, http.StatusConflict, "ConditionalRequestConflict")
	case LoseAsk:
		panic(http.ErrAbortHandler) // how a handler breaks the connection
	case LoseAnswer:
		f.forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case FailAfter:
		f.forward.ServeHTTP(httptest.NewRecorder(), r)
		refuse(w, r, http.StatusInternalServerError, "InternalError")
	case Repeat:
		f.repeat(w, r)
	case Cut:
		f.cut(w, r)
	default:
		f.forward.ServeHTTP(w, r)
	}
}

// refuse answers as S3 does. The body is read first: a server that answers while it is being sent
// may break the connection.
func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>on purpose</Message></Error>", code)
}

func (f *faults) repeat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	once := r.Clone(r.Context())
	r.Body, once.Body = io.NopCloser(strings.NewReader(string(body))), io.NopCloser(strings.NewReader(string(body)))
	f.forward.ServeHTTP(httptest.NewRecorder(), once)
	f.forward.ServeHTTP(w, r)
}

// cut promises the whole answer and gives half of it.
func (f *faults) cut(w http.ResponseWriter, r *http.Request) {
	whole := httptest.NewRecorder()
	f.forward.ServeHTTP(whole, r)
	for key, values := range whole.Header() {
		w.Header()[key] = values
	}
	body := whole.Body.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(whole.Code)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Weather is the trouble of a store while others work with it. Shares are of all requests concerned, from 0 to 1,
// drawn from the seed.
type Weather struct {
	Seed    uint64
	Busy    float64 // share that is answered SlowDown
	Broken  float64 // share whose connection breaks before, or that get an error after success
	Unheard float64 // share of PUTs that succeed and whose answer is lost
	Hanging float64 // share whose connection stays silent
	// Hang is the time for which a connection stays silent before it breaks; half of the hanging requests are done
	// before that.
	Hang time.Duration
	// SlowList bounds the delay of a LIST.
	SlowList time.Duration
	// At the end of each Every, the store is away for Away: out of reach, or too busy. 0: it never is.
	Every, Away time.Duration
}

// From returns the rule of the weather, which begins at a time.
func (w Weather) From(began time.Time) Rule {
	return func(n int, r *http.Request) Fault {
		chance := rand.New(rand.NewPCG(w.Seed, uint64(n)))
		if w.away(time.Since(began)) {
			return pick(chance, SlowDown, LoseAsk)
		}
		if IsList(r) && w.SlowList > 0 {
			hold(r, time.Duration(chance.Int64N(int64(w.SlowList))))
		}
		return w.one(chance, r)
	}
}

// away reports whether the store is away, at a time since the beginning.
func (w Weather) away(since time.Duration) bool {
	return w.Every > 0 && since%w.Every >= w.Every-w.Away
}

// one draws the fate of a request.
func (w Weather) one(chance *rand.Rand, r *http.Request) Fault {
	drawn := chance.Float64()
	below := func(share float64) bool {
		drawn -= share
		return drawn < 0
	}
	switch {
	case below(w.Busy):
		return SlowDown
	case below(w.Broken):
		return pick(chance, LoseAsk, FailAfter)
	case below(w.Hanging):
		hold(r, w.Hang)
		return pick(chance, LoseAsk, LoseAnswer)
	case IsPut(r) && below(w.Unheard):
		return LoseAnswer
	}
	return None
}

func pick(chance *rand.Rand, faults ...Fault) Fault { return faults[chance.IntN(len(faults))] }

// hold keeps a request waiting, until its client gives up.
func hold(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
