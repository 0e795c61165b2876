package run

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
)

const runLong = `Run the items of a prompt file against a provider, each exactly once. Calls that were in
flight when the process was killed are asked again.

INPUT is JSONL, or text or a table with --format ("-" reads standard input). Several files, or
a pattern such as 'part-*.jsonl', make one run. Each line of JSONL has one of these forms, in
any mix:

  {"prompt":"Name three rivers.","id":"rivers","max_tokens":50}
  {"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}],"metadata":{"row":7}}
  {"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{…}}

or is a batch line of the provider: {"custom_id","params"} of Anthropic, {"key","request"}
of Gemini, {"recordId","modelInput"} of Bedrock. headrace help input explains every field,
headrace help providers lists the providers.

Results are lines in the form of OpenAI's offline batches. Items that failed for good are
in the errors file. After an interruption, run the same command again: it continues where it
stopped, and nothing that was saved is bought again. For results.jsonl, results.state.json
keeps what was learned about the provider, and how long it asked to wait.

Each line has its cost in cost_usd if the price of its model is known: from the built-in
list, from --prices or from --price. The list has the prices of all providers, from the data
of genai-prices, on the day that headrace plan names: with cache reads and writes, and steps
by the length of the prompt. Calls that were sent and whose answer was cut off may be billed as
well: they are counted apart, in doubtful, with the tokens that the answer had told, and are no
part of any cost.

--schema FILE takes answers as results only if they are JSON that fits a JSON Schema (drafts 4 to
2020-12): their words as a whole, also in a Markdown fence, or else the arguments of their only call
of a tool. An item whose answer does not fit is asked again, up to --schema-retries times; such
calls are never more than a tenth of the items. An answer that was cut off is not asked for again.
If none of the first 20 answers fits, the run stops (exit 3). See docs/schema.md.

--pilot N first runs N items, spread over the input, and plans the rest from what they show. Then it
asks whether to go on; where nobody can answer, it ends (exit 4) unless --yes is given.

On a terminal a run that may cost more than $100 (--confirm-above) asks before its first call.
--yes answers in advance; without a terminal nothing is asked.

--service-tier flex asks for the cheap and slow tier of OpenAI, Gemini or Bedrock, for lines that
name no tier. While that tier has no room, lines wait; with auto they go to the standard tier after
--spill. The output may be continued in any tier.

The key comes from the provider's usual variable, or from a file. Every flag can be set in
the environment, --base-url as HEADRACE_BASE_URL, and in the YAML file of --config, as in
"base-url: http://…". A flag beats the environment, which beats the file; --print-config shows
what holds, and where each setting comes from. Two runs of yours on
one machine with the same key say so: they find each other in $XDG_RUNTIME_DIR/headrace, by a
short hash of the key. With --share a run goes through a headrace serve that it finds there.

Ctrl-C finishes the calls in flight; a second one abandons them. Files are whole either way.

The last lines say what was answered, what failed, time, cost, and how to read the results.
--verbose adds the proof that nothing was lost, and where the time went (headrace help time).

Exit codes:
  0    every item succeeded
  1    some items failed, a bad line came after calls (standard input), or the input changed
  2    usage, configuration or input is wrong, and nothing was called
  3    stopped by the provider (quota, balance, key, no answer at all, a long outage), or by a
       mistake in every line
  4    stopped by a limit of yours (--deadline, --max-failures, --max-cost), or after a --pilot
  5    the output cannot be written, or could not for a while
  130  interrupted
  141  the reader of standard output has gone, as in | head`

// Command returns the command headrace run. The function cluster gets runs with --cluster; nil if this build
// has none.
func Command(w *world.World, cluster OnCluster) *cobra.Command {
	flags := &settings.Flags{ManyLanes: true}
	cmd := &cobra.Command{
		Use:   "run INPUT... -o OUTPUT [flags]",
		Short: "Run a prompt file, or several, or resume it",
		Long:  runLong,
		Example: `  headrace run examples/prompts.jsonl -o results.jsonl --provider sim
  headrace run prompts.jsonl -o results.jsonl --model gpt-4o-mini
  headrace run prompts.jsonl -o results.jsonl --provider anthropic --model claude-haiku-4-5
  headrace run prompts.jsonl -o results.jsonl --base-url http://127.0.0.1:8080/v1 --rpm 600
  headrace run part-*.jsonl -o results.jsonl --model gpt-4o-mini
  cat prompts.jsonl | headrace run - -o - --model gpt-4o-mini | jq -r '.response.body.choices[0].message.content'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.PrintConfig {
				return nil
			}
			return settings.SomeInputs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.Complete(cmd.Flags(), w.Env); err != nil {
				return err
			}
			if flags.PrintConfig {
				return flags.WriteConfig(w.Stdout, flags.All)
			}
			inputs, err := settings.Matching(args)
			switch {
			case err != nil:
				return err
			case flags.Cluster != "":
				return runOnCluster(cmd.Context(), w, flags, inputs, cluster)
			}
			return runFiles(cmd.Context(), w, flags, inputs)
		},
	}
	flags.Register(cmd.Flags())
	settings.CompleteValues(cmd)
	settings.GroupFlags(cmd, settings.RunGroups)
	return cmd
}

// OnCluster runs an input in a cluster.
type OnCluster func(ctx context.Context, s *Settings, input string) error

// runOnCluster passes the input to a cluster, after it has refused the flags that no cluster can keep.
func runOnCluster(ctx context.Context, w *world.World, flags *settings.Flags, inputs []string, cluster OnCluster) error {
	own := flags.SetOf(settings.Ends)
	if flags.Cluster == settings.ClusterTrial {
		own = flags.SetOf(settings.Ends | settings.Fails)
	}
	own = slices.DeleteFunc(own, func(flag string) bool { return flag == "max-cost" })
	if len(own) > 0 {
		return exit.Refuse("%s: only for runs on one machine, as a cluster decides by itself when to stop: remove them", settings.Dashed(own))
	}
	switch {
	case flags.ServiceTier == settings.TierAuto && flags.Fleet == nil:
		return exit.Refuse("--service-tier auto: %s", autoNeedsLanes)
	case len(flags.SetOf(settings.Meters)) > 0:
		return exit.Refuse("%s: only for runs on one machine: remove it", settings.Dashed(flags.SetOf(settings.Meters)))
	case flags.Pilot > 0:
		return exit.Refuse("--pilot: only for runs on one machine: remove it")
	case cluster == nil:
		return exit.Refuse("%s", NotHere("--cluster"))
	case len(inputs) > 1:
		return exit.Refuse("--cluster: %d inputs, and a run takes one there: headrace submit --wait takes several", len(inputs))
	}
	return cluster(ctx, settingsOf(w, flags, inputs[0]), inputs[0])
}

// autoNeedsLanes says how a cluster uses both tiers of service.
const autoNeedsLanes = "in a cluster both tiers of service need lanes: name them in the file of --config, or use flex or standard"

// NotHere says that only the full command has a word or a flag.
func NotHere(what string) string {
	return what + ": this is the light command, for one machine; install the full one: go install github.com/headrace/headrace/cluster/cmd/headrace@latest"
}
