package account

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// A server that has ended is named in the errors of calls to it, and one that only breaks a call is not.
func TestServeThatHasEndedIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		must.Do(t, err)
		must.Do(t, conn.Close())
	}))
	to := &serveTransport{&http.Transport{}, server.URL}
	ask := func() error {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody))(t)
		resp, err := to.RoundTrip(req)
		if err == nil {
			must.Do(t, resp.Body.Close())
			t.Fatal("answered")
		}
		return err
	}
	if err := ask(); strings.Contains(err.Error(), "headrace serve") {
		t.Error(err)
	}
	server.Close()
	err := ask()
	if !strings.Contains(err.Error(), "headrace serve at "+server.URL+" has ended") {
		t.Error(err)
	}
	if _, is := errors.AsType[*net.OpError](err); !is {
		t.Errorf("%v hides what failed", err)
	}
}

// What calls wait in headrace serve is known by its answers, and those of another server say nothing.
func TestWaitInLineIsKnown(t *testing.T) {
	b := &Account{}
	hear := func(waited string) { b.line.noteAnswer(http.Header{"X-Headrace-Waited-Ms": {waited}}) }
	for _, odd := range []string{"", "-5", "1e3", "99999999999999999999"} {
		hear(odd)
	}
	if wait := b.InLine(); wait != 0 {
		t.Errorf("%v before any answer", wait)
	}
	for _, waited := range []string{"0", "6000", "6000"} {
		hear(waited)
	}
	if wait := b.InLine(); wait != 4*time.Second {
		t.Errorf("%v, want 4s", wait)
	}
	for range 200 {
		hear("0")
	}
	if wait := b.InLine(); wait.Round(time.Millisecond) != 0 {
		t.Errorf("%v when nothing waits any more", wait)
	}
}
