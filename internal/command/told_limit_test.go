//go:build linux || darwin

package command

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"
)

// A provider whose headers say of a lower limit that nearly all of it is left, always, is not believed for long. The limit that the
// user has told holds then, too.
func TestUsersLimitOutlivesWrongHeaders(t *testing.T) {
	calls := make(chan int, 1)
	calls <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls <- 1 + <-calls
		w.Header().Set("x-ratelimit-limit-requests-minute", "240")
		w.Header().Set("x-ratelimit-remaining-requests-minute", "239")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`)) // the client may have gone
	}))
	t.Cleanup(server.Close)
	p := start(t, nil, promptsFile(t, 100_000), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--base-url", server.URL+"/v1", "--model", "m", "--rpm", "300")
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })
	began := time.Now()
	before := <-calls
	calls <- before
	time.Sleep(20 * time.Second) // the headers are found wrong within some 5 s
	after := <-calls
	calls <- after
	n := after - before
	most := int(5*time.Since(began).Seconds()) + 15 // as many may have been saved up as any bucket holds
	if n > most || n < most/3 {
		t.Errorf("%d calls in %v at 300 a minute, want at most %d", n, time.Since(began), most)
	}
}
