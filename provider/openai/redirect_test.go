package openai_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/providertest"
)

// A redirect at home is followed with the same body, headers and key, and nothing
// is sent to the same place twice.
func TestRedirectAtHomeIsFollowedOnce(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"), body))
		if r.URL.Path != "/moved" {
			http.Redirect(w, r, "/moved", http.StatusPermanentRedirect)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	reply, err := newClient(t, server.URL).Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(`{"model":"m"}`)})
	if err != nil || reply.Finish != "stop" {
		t.Fatalf("%+v, %v", reply, err)
	}
	end := " Bearer " + providertest.Key + ` {"model":"m"}`
	if want := []string{"POST /v1/chat/completions" + end, "POST /moved" + end}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// Requests are made of one that is the same for all: a transport of the user's may
// change what it is given without the next call seeing it.
func TestForeignTransportMayChangeARequest(t *testing.T) {
	var seen []string
	c, err := openai.New(openai.Config{Transport: roundTripFunc(func(req *http.Request) (*http.Response, error) {
		seen = append(seen, req.URL.Path+req.Header.Get("X-Added"))
		req.Header.Set("X-Added", " twice")
		req.URL.Path = "/changed"
		return nil, errors.New("no network here")
	})})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _ = c.Do(t.Context(), provider.Request{Endpoint: "/v1/embeddings", Body: []byte(`{}`)})
	}
	if want := []string{"/v1/embeddings", "/v1/embeddings"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
