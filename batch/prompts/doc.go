// Package prompts turns prompt files into requests.
//
// It promises that a line is either understood or named: every complaint says
// file, line, reason and what to do, and the lines after it are still read. A
// request body goes out with the bytes it came with. Memory does not grow with the
// length of the input, but for BytesPerItem bytes an item, which tell an id used twice.
//
//	                     Reader
//	       ┌───────────────────────────────────┐
//	file ─▶│ unpack ─▶ lines or rows ─▶ format │─▶ Request: body, endpoint, model, id, key
//	       │    ─▶ form ─▶ body ─▶ id, key     │
//	       └──────┬──────────┬──────────┬──────┘
//	              └──────────┴──────────┴─▶ LineError: file, line, reason, advice
//
// Seven forms of line are told apart, line by line:
//
//	{"custom_id":"a","method":"POST","url":"/v1/…","body":{…}}   FormOpenAIBatch
//	{"custom_id":"a","params":{…}}                               FormAnthropicBatch
//	{"model":"…","messages":[…]} or {"model":"…","input":…}      FormBody
//	{"model":"…","query":"…","documents":[…]}                    FormBody
//	{"prompt":"…","system":"…","temperature":0.2}                FormPrompt
//	any fields, with a template that makes a prompt of them      FormTemplate
//	{"key":"a","request":{"contents":[…]}}                       FormGeminiBatch
//	{"recordId":"a","modelInput":{"messages":[…]}}               FormBedrockBatch
//
// Which of them a provider takes is not known here: Config.Serves lists its operations, and
// Config.Takes is asked about each request. A line is never changed for a provider.
//
// A Key ties a request to its result, whatever its line is today. What becomes of
// requests, this package does not know: results are package journal's.
package prompts
