// Package jsonl turns prompt files into requests and results into result files.
//
// It promises that a line is either understood or named: every complaint says
// file, line, reason and what to do, and the lines after it are still read. A
// request body goes out with the bytes it came with. A result is on disk, whole,
// before its item counts as done, and whatever is read back is as it was written:
// each line bears a checksum. Memory does not grow with the length of the input, but
// for BytesPerItem bytes an item, which tell an id used twice, and
// ResumeBytesPerItem for each item that an earlier run has ended.
//
//	                    Reader                                 Saver
//	       ┌──────────────────────────────┐          ┌───────────────────────┐
//	file ─▶│ unpack ─▶ lines ─▶ format    │─Request─▶│ gather ─▶ write, sync │─▶ results.jsonl
//	       │            ─▶ form ─▶ ids,key│   ...    │   ▲          │        │─▶ results.errors.jsonl
//	       └───────┬──────────┬───────────┘   Line ─▶│   └─next one─┘        │
//	               └──────────┴─▶ LineError          └──────────┬────────────┘
//	                                                            └─▶ saved, or never will be
//
// Five forms of line are told apart, line by line:
//
//	{"custom_id":"a","method":"POST","url":"/v1/…","body":{…}}   FormOpenAIBatch
//	{"custom_id":"a","params":{…}}                               FormAnthropicBatch
//	{"model":"…","messages":[…]} or {"model":"…","input":…}      FormBody
//	{"prompt":"…","system":"…","temperature":0.2}                FormPrompt
//	any fields, with a template that makes a prompt of them      FormTemplate
//
// The reader and the writers know nothing of each other; a Request's Key ties a
// result to the line that asked for it. That makes a result file a journal: read
// by a later run, it tells by their keys which items have ended.
//
//	results.jsonl ─▶ LockOutput ─▶ ReadJournal ─▶ Journal ─▶ Keys (skip these)
//	                                                 └─▶ Append (cut the torn line, go on) ─▶ Saver
//
// An item that failed and is tried again gets a second line, in the output or in the
// errors file; DropSuperseded takes the first one away. If a crash comes between, the
// output counts before the errors file, and there the last line.
//
// Job is all of that in one piece, for programs with no wishes of their own.
package jsonl
