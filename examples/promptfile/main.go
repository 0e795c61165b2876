// My prompts are in a file: how do I get each answer into another, once? OpenJob ties the two.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

const questions = `{"id":"mill","prompt":"What turns the wheel of a mill?","model":"sim-1"}
{"id":"race","prompt":"What is a headrace?","model":"sim-1"}`

// answer asks what is left of in, and tells how many items that was.
func answer(client *openai.Client, in, out string) (asked int) {
	job, err := promptfile.OpenJob(in, out, prompts.Config{})
	check(err)
	call := func(ctx context.Context, r prompts.Request) (provider.Reply, error) {
		return client.Do(ctx, provider.Request{Endpoint: r.Endpoint, Model: r.Model, Body: r.Body})
	}
	for r, err := range batch.Stream(context.Background(), job.Requests(), call) {
		check(err) // the run's own; a failed item is a result with an Err
		line := promptfile.LineFor(&r.Item)
		line.Response = &journal.Response{StatusCode: r.Value.Status, RequestID: r.Value.RequestID, Body: r.Value.Body}
		if r.Err != nil {
			line.Error = &journal.Failure{Code: "failed", Message: r.Err.Error()}
		}
		job.Save(line)
		asked++
	}
	check(job.Close()) // everything is on disk
	return asked
}

func main() {
	client, err := openai.New(openai.Config{APIKey: "none-needed", Transport: sim.NewTransport(sim.New(sim.Fast(), clockwork.NewRealClock()))})
	check(err)
	folder, err := os.MkdirTemp("", "promptfile")
	check(err)
	defer func() { check(os.RemoveAll(folder)) }()
	in, out := folder+"/prompts.jsonl", folder+"/results.jsonl"
	check(os.WriteFile(in, []byte(questions), 0o600))
	fmt.Printf("first run: %d asked\nsecond run: %d asked\n", answer(client, in, out), answer(client, in, out))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
