package peers

import (
	"io"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
)

// mute takes the words from a refusal. What headrace sim says in them (the limit a
// minute, the wait) is true of its own time, and to a clock that is ten times as
// fast it would be wrong by as much. nginx and HAProxy say nothing anyway.
type mute struct{ http.RoundTripper }

func newMute() mute { return mute{provider.NewHTTPTransport(conns)} }

func (m mute) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	_ = resp.Body.Close()
	const silent = `{"error":{"message":"Too Many Requests"}}`
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(silent)), int64(len(silent))
	resp.Header.Del("Content-Length")
	return resp, nil
}

func (m mute) CloseIdleConnections() { m.RoundTripper.(*http.Transport).CloseIdleConnections() }
