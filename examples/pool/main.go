// I have two providers, and want to spend one dollar: how do I use the cheap one first?
//
// A pool prefers its first lane. The second takes over once the first has stopped, or was ill for
// a minute. Here the cheap provider's balance ends after 40 answers, and the budget ends the run.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	gopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

type question = gopenai.ChatCompletionRequest

// price is the cost of a call on each lane, in USD.
var price = map[string]float64{"cheap": 0.005, "dear": 0.02}

func client(c sim.Config) *openai.Client {
	made, err := openai.New(openai.Config{APIKey: "none-needed", Transport: sim.NewTransport(sim.New(c, clockwork.NewRealClock()))})
	if err != nil {
		log.Fatal(err)
	}
	return made
}

func main() {
	clients := map[string]*openai.Client{"cheap": client(sim.Config{QuotaAfter: 40}), "dear": client(sim.Config{})}
	call := func(ctx context.Context, q question) (gopenai.ChatCompletionResponse, error) {
		return clients[batch.LaneFrom(ctx)].Chat(ctx, q)
	}
	ask := question{Model: "sim-1", Messages: []gopenai.ChatCompletionMessage{{Role: "user", Content: "What is a headrace?"}}}
	var sum batch.Summary
	results, err := batch.Run(context.Background(), slices.Values(slices.Repeat([]question{ask}, 120)), call, batch.WithSummary(&sum),
		batch.WithPoolOf(func(question) string { return "chats" }),
		batch.WithPrefer("chats", time.Minute, []string{"cheap"}, []string{"dear"}),
		batch.WithMaxCost(batch.Budget[question]{
			Max:     1,
			Reserve: func(_ question, lane string, _ float64) (float64, bool) { return price[lane], true },
			Cost:    func(_ question, lane string, _ provider.Usage) (float64, bool) { return price[lane], true },
		}))
	answered := map[string]int{}
	for _, r := range results {
		if r.Err == nil {
			answered[r.Lane]++
		}
	}
	fmt.Printf("cheap answered %d, dear %d; %d are left; %v of %v spent; budget met: %t\n",
		answered["cheap"], answered["dear"], sum.NotRun, sum.Money.Spent, sum.Money.Cap, errors.Is(err, batch.ErrMaxCost))
}
