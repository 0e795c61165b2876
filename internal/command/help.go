package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/settings"
)

// newConfigTopic explains the file of --config. It is not a command: "headrace help config"
// shows it.
func newConfigTopic() *cobra.Command {
	var text strings.Builder
	settings.WriteConfigHelp(&text)
	return &cobra.Command{Use: "config", Short: "Settings of the --config file", Long: strings.TrimRight(text.String(), "\n")}
}

// newTimeTopic explains the words in the sum of a run's time. It is not a command: "headrace
// help time" shows it.
func newTimeTopic() *cobra.Command {
	return &cobra.Command{Use: "time", Short: "The words in the time line of --verbose", Long: timeHelp}
}

const timeHelp = `With --verbose a run ends with a sum of its time: for each moment, the one thing that held
it back most. Finding the limit is search, trial and recovery together.

  requests, tokens, input tokens, output tokens
                limits of the provider on these, from headers, from flags or learned
  search        the limit is not known yet: the pace rises until a call is refused
  trial         going slower for a while to see whether refusals stop
  cooldown      a wait after a refusal: as long as the provider asked, or as estimated
  recovery      a probe and a ramp after a cooldown, back to full speed
  overload      the server says that it is too busy
  breaker       an outage: calls fail, and one at a time tests whether the server is back
  errors        slower, as a share of the calls fails
  unanswered    calls that get no answer hold the places of others
  window        the number of calls in flight that the server can take, as measured
  concurrency   your -c: that many calls were in flight
  backoff       all remaining items wait for their own retry
  input         the input did not deliver items fast enough
  output        results were written, or read by another program, too slowly
  budget        your --max-cost: calls wait until those in flight show what they cost
  slept         this computer slept, or the process was stopped
  paused        you paused the run
  draining      after Ctrl-C or a deadline: finishing the calls in flight
  stopped       after the provider stopped the run: finishing the calls in flight
  tail          the last calls: nothing is left to start`

// newInputTopic explains how inputs are read. It is not a command: "headrace help input" shows
// it.
func newInputTopic() *cobra.Command {
	return &cobra.Command{Use: "input", Short: "What each field of a line and each column of a table means", Long: fmt.Sprintf(inputHelp, wrapped(prompts.Parameters(), "  "))}
}

// helpWidth is the width of lists in the help, in characters.
const helpWidth = 90

// wrapped joins words with commas, in indented lines of at most helpWidth characters.
func wrapped(words []string, indent string) string {
	var out strings.Builder
	width := 0
	for i, word := range words {
		if i < len(words)-1 {
			word += ","
		}
		switch {
		case width == 0:
			out.WriteString(indent)
		case width+1+len(word) > helpWidth:
			out.WriteString("\n" + indent)
			width = 0
		default:
			out.WriteByte(' ')
			width++
		}
		out.WriteString(word)
		width += len(word)
	}
	return out.String()
}

const inputHelp = `INPUT is JSONL, text (--format text, one prompt a line) or a table (a name that ends in .csv,
or --format csv). Each line of JSONL has one of these forms. A line in two of them is refused.

Several files, or a pattern in quotes such as 'part-*.jsonl', are one input, in their order. An id
is unique over all of them. Lines are numbered on from file to file, and so are the ids of lines
that give none; file and file_line of a result say where it stands. The same files again go on.

A prompt: {"prompt":"…"}
  prompt             the question
  id, custom_id      names the result (default: the number of the line, as in line-000042)
  system             system message (default: --system)
  model              model (default: --model)
  metadata           an object that comes back with the result, and is not sent
  url, body, input   data of your own, if they are text or numbers: they come back as metadata
  all others         are sent unchanged, such as "temperature":0.2 or "max_tokens":50

A request body: {"model":…,"messages":[…]}, {"model":…,"input":…} or, to have documents
ranked, {"model":…,"query":…,"documents":[…]}
  id, custom_id and metadata as above; all others are sent unchanged

A batch line: {"custom_id","url","body"} of OpenAI, {"custom_id","params"} of Anthropic,
{"key","request"} of Gemini, {"recordId","modelInput"} of Bedrock
  body, params, request or modelInput is sent byte for byte; --stream adds only what asks for
  a stream. A line with a model, a system message or a parameter next to body or params is
  refused, as these would not be sent. Next to request and modelInput a model is correct, as
  it is part of the URL.

A row of a table
  prompt, id, custom_id, system and model mean what they mean in a prompt. These columns are
  sent as parameters; an empty cell counts as missing:
%s
  All other columns come back as metadata. If a column has one of these names and another
  meaning, rename it, or use --template.

With --template TEXT
  id and custom_id name the result. All other fields and columns are data for the template, as
  in "Translate: {{.text}}": none is sent as a parameter, model or system message. Objects and
  lists are printed as JSON. A field that is null or missing fails the line where it is printed;
  {{if .text}}…{{end}} tests for it first. metadata comes back if it is an object.

With --endpoint /v1/rerank
  a prompt, also one of a template, is the query. Its line has a list of documents, or
  --param 'documents=["…","…"]' gives one to all lines.

With --param NAME=VALUE, as often as you like
  the parameter is sent with every line that does not set it. VALUE is JSON if it parses as
  JSON, else a string: --param max_tokens=50 --param stop=END --param 'user="7"'
  A variable or the file of --config may have several, one a line.`
