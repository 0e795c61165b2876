package export

import "github.com/spf13/cobra"

// NewTopic explains how other programs read results. It is not a command: "headrace help data" shows
// it.
func NewTopic() *cobra.Command {
	return &cobra.Command{Use: "data", Short: "Lines for pandas, DuckDB, jq and R", Long: topic}
}

// topic has a block of lines for each program, which a test runs. Its heading names the program.
const topic = `headrace export results.jsonl -o results.csv makes a table that each of these reads: a row for each
item, with empty cells where an answer has no value. The result files themselves are JSON, an
object a line.

pandas
  import pandas as pd
  table = pd.read_csv("results.csv")
  print(table.groupby("model")[["input_tokens", "output_tokens"]].sum())
  print(table[table["error"].notna()][["id", "error", "message"]])
  lines = pd.json_normalize(pd.read_json("results.jsonl", lines=True).to_dict("records"))
  print(lines[["custom_id", "headrace.latency_ms"]])

python3
  import csv
  with open("results.csv", newline="", encoding="utf-8") as file:
      for row in csv.DictReader(file):
          print(row["id"], row["text"] or row["error"])

duckdb
  SELECT model, count(*), sum(output_tokens) FROM 'results.csv' GROUP BY model;
  SELECT custom_id, headrace.latency_ms FROM read_json('results.jsonl');
  COPY (FROM 'results.csv') TO 'results.parquet';

jq
  jq -r '[.custom_id, .response.body.choices[0].message.content] | @tsv' results.jsonl
  jq -s 'map(.headrace.usage.output_tokens) | add' results.jsonl

R
  table <- read.csv("results.csv")
  print(aggregate(output_tokens ~ model, table, sum))
  lines <- jsonlite::stream_in(file("results.jsonl"), verbose = FALSE)
  print(head(lines$custom_id))

A cell of --format csv is the text as it is, with line feeds in it: read a CSV with a reader of CSV,
not line by line. --format jsonl has the same columns, and null where there is no value.`
