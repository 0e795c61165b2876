// My prompts are written once: how do I ask them of providers with other words?
//
// A chat as OpenAI writes it is put into the client's dialect, if every field of it can be said
// there exactly; else nothing is sent. The providers are simulated, as Anthropic and Gemini.
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
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/sim"
	claude "github.com/headrace/headrace/provider/sim/anthropic"
	"github.com/headrace/headrace/provider/sim/face"
	google "github.com/headrace/headrace/provider/sim/gemini"
)

// chat is in OpenAI's words; MaxTokens is for dialects that demand a bound.
func chat(question, more string) provider.Request {
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]%s}`, question, more)
	return provider.Request{Endpoint: provider.Chat, Model: "sim-1", Body: []byte(body), MaxTokens: 200}
}

func transport(of face.Face) *sim.Transport {
	return sim.NewTransport(sim.New(sim.Config{Face: of}, clockwork.NewRealClock()))
}

func main() {
	toClaude, err := anthropic.New(anthropic.Config{APIKey: "any", Text: true, Transport: transport(claude.Face{})})
	check(err)
	toGemini, err := gemini.New(gemini.Config{APIKey: "any", Text: true, Transport: transport(google.Face{})})
	check(err)
	questions := []provider.Request{chat("What is a headrace?", ""), chat("And a tailrace?", `,"seed":7`)}
	for _, ask := range []func(context.Context, provider.Request) (provider.Reply, error){toClaude.Do, toGemini.Do} {
		results, err := batch.Run(context.Background(), slices.Values(questions), ask)
		check(err)
		for _, r := range results {
			if no := (*provider.Untranslatable)(nil); errors.As(r.Err, &no) {
				fmt.Printf("%s was not asked: %s %s\n", no.Dialect, no.Field, no.Why)
				continue
			}
			check(r.Err)
			fmt.Printf("%s (%s): %s\n", r.Value.Dialect, r.Value.Finish, r.Value.Text)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
