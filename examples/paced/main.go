// My program calls an SDK from many places: how does it keep to the limit?
//
// paced.Transport is the one line. Here 200 goroutines ask at once, with the OpenAI client as it
// is, where the provider lets 3,000 calls a minute in and refuses any more. They wait in line.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/jonboulle/clockwork"
	gopenai "github.com/sashabaranov/go-openai"
	"golang.org/x/sync/errgroup"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/paced"
	"github.com/headrace/headrace/provider/sim"
)

func main() {
	// A simulated provider, so that the example needs neither key nor network.
	server := sim.New(sim.Config{RPM: 3000, Burst: time.Second, Headers: true, RetryAfter: sim.Always}, clockwork.NewRealClock())

	shared, err := batch.NewShared(batch.WithLimits(batch.Limits{RPM: 3000}))
	if err != nil {
		log.Fatal(err)
	}
	defer shared.Close()

	config := gopenai.DefaultConfig("a-key")
	config.HTTPClient = &http.Client{Transport: paced.Transport(shared, sim.NewTransport(server))} // the line; nil is the real network
	client := gopenai.NewClientWithConfig(config)

	var calls errgroup.Group
	for i := range 200 {
		calls.Go(func() error {
			_, err := client.CreateChatCompletion(context.Background(), gopenai.ChatCompletionRequest{
				Model:    gopenai.GPT4oMini,
				Messages: []gopenai.ChatCompletionMessage{{Role: gopenai.ChatMessageRoleUser, Content: fmt.Sprint("How deep is lock ", i, "?")}},
			})
			return err
		})
	}
	err = calls.Wait()
	books := server.Books()
	fmt.Printf("failed: %v; %d answered, refused on the way: %d\n", err, books.Accepted, books.Refused429)
}
