// My prompts are in a file: how do I get each answer into another, once?
//
// promptfile.Open ties the two files. A second run asks only the items that have no answer
// on disk.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

const questions = `{"id":"mill","prompt":"What turns the wheel of a mill?","model":"sim-1"}
{"id":"race","prompt":"What is a headrace?","model":"sim-1"}`

// answer asks the items of in that are left, and returns their number.
func answer(client *openai.Client, in, out string) (asked int) {
	input, err := promptfile.File(in)
	check(err)
	job, err := promptfile.Open(promptfile.Config{Input: input, Output: out})
	check(err)
	sums, err := job.Run(context.Background(), func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		return client.Do(ctx, it.Asks())
	})
	check(err) // the reason why not all of it ran; the answers are on disk all the same
	check(job.Close())
	return sums.Items()
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
