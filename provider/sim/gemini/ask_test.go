package gemini_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/gemini"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func server(cfg sim.Config) *sim.Server {
	cfg.Face = gemini.Face{}
	return sim.New(cfg, clockwork.NewFakeClockAt(epoch))
}

type answer struct {
	status int
	header http.Header
	body   gjson.Result
}

// ask sends a request; headers are names and values in turn.
func ask(t *testing.T, s *sim.Server, path, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://sim"+path, strings.NewReader(body))
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
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, gjson.ParseBytes(b)}
}
