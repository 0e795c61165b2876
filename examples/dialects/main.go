// My prompts are written once: how do I send them to providers with other dialects?
//
// The client translates a chat in OpenAI's form into its own dialect if that can express every
// field exactly; otherwise it sends nothing. The providers are simulated, as Anthropic and
// Gemini.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/sim"
	claude "github.com/headrace/headrace/provider/sim/anthropic"
	"github.com/headrace/headrace/provider/sim/face"
	google "github.com/headrace/headrace/provider/sim/gemini"
	"github.com/headrace/headrace/provider/wire"
)

// chat returns a request in OpenAI's form. Some dialects demand MaxTokens.
func chat(question, more string) provider.Request {
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]%s}`, question, more)
	return provider.Request{Endpoint: provider.Chat, Model: "sim-1", Body: []byte(body), MaxTokens: 200}
}

// simulated is an option for a client without the network. Text makes the answers plain
// text.
func simulated(as face.Face) func(*wire.Config) {
	return func(c *wire.Config) {
		c.Transport, c.Text = sim.NewTransport(sim.New(sim.Config{Face: as}, clockwork.NewRealClock())), true
	}
}

func main() {
	questions := []provider.Request{chat("What is a headrace?", ""), chat("And a tailrace?", `,"seed":7`)}
	for _, as := range []face.Face{claude.Face{}, google.Face{}} {
		client, err := catalog.Client(as.Name(), catalog.Place{}, "any-key", simulated(as)) // "anthropic", "gemini"
		if err != nil {
			log.Fatal(err)
		}
		results, err := batch.Run(context.Background(), slices.Values(questions), client.Do)
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range results {
			if no := new(provider.Untranslatable); errors.As(r.Err, &no) {
				fmt.Printf("%s was not asked: %s %s\n", no.Dialect, no.Field, no.Why)
			} else {
				fmt.Printf("%s (%s): %s\n", r.Value.Dialect, r.Value.Finish, r.Value.Text)
			}
		}
	}
}
