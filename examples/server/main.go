// My server calls a provider for each request: how do all its handlers keep to one limit?
//
// Each handler calls batch.Do. Its call waits in one line with those of the others, and leaves the
// line at once if its client goes away. Here 100 clients come together, where 50 calls a second
// are let in.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"golang.org/x/sync/errgroup"

	"github.com/headrace/headrace/batch"
)

func main() {
	shared, err := batch.NewShared(batch.WithLimits(batch.Limits{RPM: 3000}))
	if err != nil {
		log.Fatal(err)
	}
	defer shared.Close() // after the server: no handler is left then

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := batch.Do(r.Context(), shared, r.URL.Query().Get("page"), call)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()

	var clients errgroup.Group
	for page := range 100 {
		clients.Go(func() error { return get(fmt.Sprint(server.URL, "?page=", page)) })
	}
	err = clients.Wait()
	s, _ := shared.Status(context.Background(), 0)
	fmt.Printf("failed: %v; %d calls, none lost: %v\n", err, s.Totals.Calls, s.Totals.Proves())
}

// call stands for the request to the provider.
func call(_ context.Context, page string) (string, error) { return "a summary of page " + page, nil }

func get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}
