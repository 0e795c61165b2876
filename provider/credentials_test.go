package provider_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// By whatever header, or parameter of the URL, a provider is given a credential: an
// answer that repeats it is recorded without.
func TestCredentialsAreTakenOut(t *testing.T) {
	const secret = "sk-a/secret+of-the-test"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "id "+secret)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "refused: "+secret+" sk-a%2Fsecret%2Bof-the-test")
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &provider.Transport{Base: provider.NewHTTPTransport(1)}}
	t.Cleanup(client.CloseIdleConnections)
	for _, way := range []string{
		"Authorization: Bearer ", "Authorization: ", "Proxy-Authorization: Basic ", "X-Api-Key: ", "Api-Key: ", "X-Goog-Api-Key: ",
		"X-Goog-Iam-Authorization-Token: ", "X-Amz-Security-Token: ", "?key=", "?a=b&api_key=", "?api-key=", "?apikey=", "?access_token=",
		"?X-Amz-Security-Token=", "?X-Amz-Signature=", "?sig=",
	} {
		ctx, rec := provider.WithRecorder(context.Background())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if name, value, ok := strings.Cut(way, ": "); ok {
			req.Header.Set(name, value+secret)
		} else {
			req.URL.RawQuery = strings.TrimPrefix(way, "?") + "sk-a%2Fsecret%2Bof-the-test"
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		r := rec.Snapshot()
		if text := r.RequestID + string(r.ErrorBody); strings.Contains(text, secret) || strings.HasPrefix(way, "?") && strings.Contains(text, "%2F") {
			t.Errorf("%s: %s", way, text)
		}
	}
}
