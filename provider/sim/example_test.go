package sim_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/provider/sim"
)

// A client of the simulated provider, in process: no socket is opened.
func ExampleNewTransport() {
	server := sim.New(sim.Config{RPM: 1}, clockwork.NewRealClock())
	client := &http.Client{Transport: sim.NewTransport(server)}
	for range 2 {
		body := strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
		resp, err := client.Post("http://sim/v1/chat/completions", "application/json", body)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.Status, strings.Contains(string(text), sim.Answer("hello")))
	}
	books := server.Books()
	fmt.Println(books.Received, books.Accepted, books.Refused429)
	// Output:
	// 200 OK true
	// 429 Too Many Requests false
	// 2 1 1
}
