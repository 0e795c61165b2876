// Package jsonl turns prompt files into requests and results into result files.
//
// It promises that a line is either understood or named: every complaint says
// file, line, reason and what to do, and the lines after it are still read. A
// request body goes out with the bytes it came with, and a result file holds
// whole lines only. Memory does not grow with the length of the input, but for
// at most BytesPerItem bytes per item, which tell an id used twice.
//
//	                    Reader                                Writer
//	       ┌──────────────────────────────┐          ┌───────────────────────┐
//	file ─▶│ lines ─▶ form ─▶ ids ─▶ key  │─Request─▶│ AppendLine ─▶ buffer  │─▶ results.jsonl
//	       │   │        │       │         │   ...    │   whole lines, one    │─▶ results.errors.jsonl
//	       └───┼────────┼───────┼─────────┘   Line ─▶│   write per flush     │
//	           └────────┴───────┴─▶ LineError        └───────────────────────┘
//
// Four forms of line are told apart, line by line:
//
//	{"custom_id":"a","method":"POST","url":"/v1/…","body":{…}}   FormOpenAIBatch
//	{"custom_id":"a","params":{…}}                               FormAnthropicBatch (refused)
//	{"model":"…","messages":[…]} or {"model":"…","input":…}      FormBody
//	{"prompt":"…","system":"…","temperature":0.2}                FormPrompt
//
// The reader and the writer know nothing of each other; a Request's Key ties a
// result to the line that asked for it. That makes a result file a journal: read
// by a later run, it tells by their keys which items have ended.
//
//	results.jsonl ─▶ ReadJournal ─▶ Journal ─▶ Keys (skip these)
//	                                   └─▶ Append (cut the torn line, go on) ─▶ Writer
package jsonl
