package serve

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider/sim"
)

// A body goes out byte for byte with the provider's key, the answer comes back so, and the client's
// token stays here: in each dialect, whole and as a stream.
func TestEachDialectPasses(t *testing.T) {
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			m := mills(t, d, sim.Config{Headers: true, TrackBodies: true}, nil)
			seen := &watched{Transport: sim.NewTransport(m.sim)}
			m2 := over(t, d, seen, nil)
			for _, test := range []struct{ path, body, words string }{{d.path, d.body, d.words}, {d.stream, d.streamBody, ""}} {
				resp, body := m2.ask(m2.request(t.Context(), test.path, test.body, "X-Headrace-Tag", "t", "X-Custom", "kept"))
				if resp.StatusCode != http.StatusOK || body != seen.answer || !strings.Contains(body, test.words) || body == "" {
					t.Errorf("%s: %d %q, and the provider said %q", test.path, resp.StatusCode, body, seen.answer)
				}
				if resp.Header.Get("X-Headrace-Attempts") != "1" || resp.Header.Get("X-Headrace-Lane") != "m-1" || resp.Header.Get("X-Headrace-Waited-Ms") == "" {
					t.Errorf("%s: %v", test.path, resp.Header)
				}
				if seen.body != test.body || seen.header.Get("X-Custom") != "kept" || seen.header.Get("X-Headrace-Tag") != "" || strings.Contains(seen.all, token) {
					t.Errorf("%s: the provider saw %q and %s", test.path, seen.body, seen.all)
				}
				if got := seen.header.Get(d.keyIn); got != d.keyPrefix+ownKey {
					t.Errorf("%s: the provider's key came as %q", test.path, got)
				}
			}
			if c := m2.proves(t); c.Calls != 2 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// watched keeps what was sent and answered last.
type watched struct {
	*sim.Transport
	header            http.Header
	body, answer, all string
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.body, w.header, w.answer = string(body), r.Header.Clone(), ""
	var all strings.Builder
	_ = r.Header.Write(&all)
	w.all = r.URL.String() + "\n" + all.String() + w.body
	r.Body = io.NopCloser(strings.NewReader(w.body))
	resp, err := w.Transport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(resp.Body, (*texts)(&w.answer)), resp.Body}
	}
	return resp, err
}

type texts string

func (t *texts) Write(p []byte) (int, error) { *t += texts(p); return len(p), nil }
