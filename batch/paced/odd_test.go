package paced

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/headrace/headrace/batch"
)

type leaving struct{}

func (leaving) RoundTrip(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil }

// A base that ends its goroutine is an error of the call, and not an answer that is nil.
func TestBaseThatEndsTheGoroutine(t *testing.T) {
	shared, err := batch.NewShared()
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Transport(shared, leaving{}).RoundTrip(req)
	if resp != nil || err == nil {
		t.Errorf("%v, %v", resp, err)
	}
}

// A request without a URL is an error, as of http.Transport.
func TestRequestWithoutURL(t *testing.T) {
	shared, err := batch.NewShared()
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	if _, err := Transport(shared, nil).RoundTrip(&http.Request{Method: http.MethodPost}); err == nil {
		t.Error("no error")
	}
}
