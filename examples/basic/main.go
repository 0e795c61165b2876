// How do I run many calls, and get every answer in the order of my input?
//
// batch.Run calls a function once for each item: here, the chat of an OpenAI client. The
// provider is simulated and allows 20 calls at once and 100 a second, so it refuses some of
// the 60 calls. This program does not have to care.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	gopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

func main() {
	server := sim.New(sim.Config{RPM: 6000, Burst: 200 * time.Millisecond, RetryAfter: sim.Always}, clockwork.NewRealClock())
	client, err := openai.New(openai.Config{APIKey: "none-needed", Transport: sim.NewTransport(server)})
	if err != nil {
		log.Fatal(err)
	}

	var requests []gopenai.ChatCompletionRequest
	for i := range 60 {
		requests = append(requests, gopenai.ChatCompletionRequest{
			Model:    "sim-1",
			Messages: []gopenai.ChatCompletionMessage{{Role: "user", Content: fmt.Sprintf("What is %d times two?", i)}},
		})
	}

	results, err := batch.Run(context.Background(), slices.Values(requests), client.Chat, batch.WithConcurrency(32))
	if err != nil {
		log.Fatal(err) // the error of the run; a failed item is a result with an Err
	}
	answered, refused := 0, 0
	for _, r := range results {
		refused += r.Calls - 1
		if r.Err == nil {
			answered++
		}
	}
	fmt.Println("the first answer:", results[0].Value.Choices[0].Message.Content)
	fmt.Printf("%d of %d answered, after %d refusals\n", answered, len(results), refused)
}
