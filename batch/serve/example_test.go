package serve_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/wire"
)

// A program that serves its own pages lets other programs call a provider through it, with tokens of its own: here the
// simulated one stands for the provider.
func Example() {
	model := httptest.NewServer(sim.New(sim.Config{RPM: 6000, Headers: true, Keys: []string{"sk-provider"}}, clockwork.NewRealClock()))
	defer model.Close()

	shared, err := batch.NewShared(batch.WithConcurrency(64), batch.WithOutagePatience(0), batch.WithFirstAnswer(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()
	client, err := catalog.Client("openai", catalog.Place{}, "sk-provider", func(c *wire.Config) { c.BaseURL = model.URL + "/v1" })
	if err != nil {
		fmt.Println(err)
		return
	}
	paced, err := serve.New(serve.Config{
		Shared:   shared,
		Upstream: func(string) serve.Upstream { return client },
		Clients:  []door.Client{{Name: "nightly", SHA256: sha256.Sum256([]byte("hr-nightly")), First: door.Normal}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", paced)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a page of this program") })
	program := httptest.NewServer(mux) // in a program: http.ListenAndServe("127.0.0.1:8080", mux)

	for _, token := range []string{"hr-nightly", "sk-provider"} {
		req, err := http.NewRequest(http.MethodPost, program.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.Status, strings.Contains(string(text), sim.Answer("hello")))
	}
	fmt.Println(paced.Close(context.Background())) // waits for calls in flight
	program.Close()
	http.DefaultClient.CloseIdleConnections()
	client.CloseIdle()
	// Output:
	// 200 OK true
	// 401 Unauthorized false
	// <nil>
}
