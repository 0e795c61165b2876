package sigv4_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/wire"
)

// refusal is an answer by which AWS does not accept a signature.
type refusal struct {
	status     int
	name, says string
}

// The answers that blame the clock.
var (
	expired = refusal{http.StatusForbidden, "InvalidSignatureException", "Signature expired: 20150830T123600Z is now earlier than 20150830T133100Z (20150830T133600Z - 5 min.)"}
	early   = refusal{http.StatusForbidden, "InvalidSignatureException", "Signature not yet current: 20150830T143600Z is still later than 20150830T134100Z"}
	old     = refusal{http.StatusBadRequest, "RequestExpired", "Request has expired."}
	skewed  = refusal{http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."}
)

// served calls a server that checks signatures by its own clock, which is off by so much, and
// counts the calls. date is what its answers have for a date; "" is none.
func served(t *testing.T, off time.Duration, how refusal, always bool, date func(time.Time) string) (call func() error, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	by := checker{id: suite.AccessKeyID, secret: suite.SecretAccessKey, region: "us-east-1", service: sigv4.Bedrock}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		now := time.Now().Add(off)
		w.Header()["Date"] = nil
		if text := date(now); text != "" {
			w.Header().Set("Date", text)
		}
		if always || by.check(r, body, now) != nil {
			w.Header().Set("X-Amzn-Errortype", how.name+":http://internal.amazon.com/coral/com.amazon.coral.service/")
			w.WriteHeader(how.status)
			fmt.Fprintf(w, `{"message":%q}`, how.says)
			return
		}
		fmt.Fprint(w, `{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`)
	}))
	t.Cleanup(server.Close)
	client, err := wire.New(wire.Config{Dialect: converse.Dialect{}, BaseURL: server.URL, Auth: newSource(t, suite, "us-east-1", sigv4.Bedrock)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdle)
	return func() error {
		_, err := client.Do(t.Context(), provider.Request{Endpoint: provider.Converse, Model: "m:0", Body: []byte(`{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`)})
		return err
	}, calls
}

func httpDate(at time.Time) string { return at.UTC().Format(http.TimeFormat) }

// A clock that is an hour off, either way, costs one call more: that one is sent again, and all
// others are signed by the provider's time.
func TestClockIsPutRight(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		for _, how := range []refusal{expired, early, old, skewed} {
			call, calls := served(t, off, how, false, httpDate)
			for range 3 {
				if err := call(); err != nil {
					t.Errorf("off by %v, %s: %v", off, how.name, err)
				}
			}
			if n := calls.Load(); n != 4 {
				t.Errorf("off by %v, %s: %d calls, want 4", off, how.name, n)
			}
		}
	}
}

// Many calls that were signed by the wrong time are each sent again once.
func TestClockIsPutRightForAll(t *testing.T) {
	call, calls := served(t, time.Hour, expired, false, httpDate)
	const n = 20
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := call(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := calls.Load(); got > 2*n {
		t.Errorf("%d calls", got)
	}
}

// A refusal that stays is sent again once at most, whatever dates come with it.
func TestClockIsPutRightOnce(t *testing.T) {
	var turns atomic.Int64
	for name, date := range map[string]func(time.Time) string{
		"a date":         httpDate,
		"another date":   func(at time.Time) string { return httpDate(at.Add(time.Duration(turns.Add(1)) * time.Hour)) },
		"back and forth": func(at time.Time) string { return httpDate(at.Add(time.Duration(turns.Add(1)%2) * -5 * time.Hour)) },
	} {
		call, calls := served(t, time.Hour, expired, true, date)
		for i := range 4 {
			if err := call(); !errors.Is(err, provider.Unauthorized) || calls.Load() != int64(2+i) {
				t.Errorf("%s: call %d: %v, %d were sent", name, i, err, calls.Load())
			}
		}
	}
}

// What is no fault of the clock is not sent again: for another reason, without a date, and with
// one that is as good as that of the signature.
func TestOtherRefusalsStay(t *testing.T) {
	mismatch := refusal{http.StatusForbidden, "InvalidSignatureException", "The request signature we calculated does not match the signature you provided."}
	denied := refusal{http.StatusForbidden, "AccessDeniedException", "You don't have access to the model with the specified model ID."}
	near := func(at time.Time) string { return httpDate(at.Add(4 * time.Minute)) }
	for name, c := range map[string]struct {
		off  time.Duration
		how  refusal
		date func(time.Time) string
	}{
		"another signature": {time.Hour, mismatch, httpDate},
		"no access":         {time.Hour, denied, httpDate},
		"no date":           {time.Hour, expired, func(time.Time) string { return "" }},
		"no such date":      {time.Hour, expired, func(time.Time) string { return "tomorrow" }},
		"nearly right":      {0, expired, near},
	} {
		call, calls := served(t, c.off, c.how, true, c.date)
		if err := call(); !errors.Is(err, provider.Unauthorized) || calls.Load() != 1 {
			t.Errorf("%s: %v, %d calls", name, err, calls.Load())
		}
	}
}

// Somebody who sets the clock in the middle of a run does not end it: the signatures follow.
func TestClockThatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, suite, "us-east-1", sigv4.Bedrock)
		why := &provider.Error{Kind: provider.Unauthorized, Message: expired.says}
		signed := func() (*http.Request, time.Time) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://host/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(t.Context(), r, nil); err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil {
				t.Fatal(err)
			}
			return r, at
		}
		for _, c := range []struct {
			wait, off time.Duration // after which the machine's clock lacks so much
			again     bool
		}{
			{0, time.Hour, true},
			{9 * time.Minute, 0, false}, // too soon
			{2 * time.Minute, 0, true},
		} {
			time.Sleep(c.wait)
			r, _ := signed()
			want := time.Now().Add(c.off)
			if got := s.RefusedFor(r, why, http.Header{"Date": {httpDate(want)}}); got != c.again {
				t.Errorf("%+v: %t", c, got)
			}
			if _, at := signed(); (at.Sub(want).Abs() < 2*time.Second) != c.again {
				t.Errorf("%+v: signed at %v", c, at)
			}
		}
	})
}
