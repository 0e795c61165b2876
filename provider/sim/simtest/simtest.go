package simtest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/face"
)

// Epoch is the time at which New's clock stands.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// New makes a provider with that face.
func New(cfg sim.Config, f face.Face) *sim.Server {
	cfg.Face = f
	return sim.New(cfg, clockwork.NewFakeClockAt(Epoch))
}

// Answer is the provider's answer. Body has no type if it is not JSON; for a stream it lists the
// data of the events.
type Answer struct {
	Status int
	Header http.Header
	Body   gjson.Result
	Text   string // the body as it came
}

// Ask sends a POST. The headers are names and values in turn: of two of a name the later
// counts.
func Ask(t *testing.T, s *sim.Server, path, body string, header ...string) Answer {
	t.Helper()
	return Send(t, s, http.MethodPost, path, body, header...)
}

// Send is Ask with another method.
func Send(t *testing.T, s *sim.Server, method, path, body string, header ...string) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://sim"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := sim.NewTransport(s).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	if err != nil {
		t.Fatal(err)
	}
	said, err := said(resp.Header.Get("Content-Type"), text)
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return Answer{resp.StatusCode, resp.Header, gjson.Parse(said), string(text)}
}
