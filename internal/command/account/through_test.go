package account

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// A server that has ended is named in the errors of calls to it, and one that only breaks a call is not.
func TestServeThatHasEndedIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		must.Do(t, err)
		must.Do(t, conn.Close())
	}))
	to := &toServe{&http.Transport{}, server.URL}
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
