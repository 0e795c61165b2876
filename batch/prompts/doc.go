// Package prompts turns prompt files into requests.
//
// A line is either understood or named: every complaint says file, line, reason and what to
// do, and the lines after it are still read. A request body goes out with the bytes it came
// with. Memory does not grow with the length of the input, except for BytesPerItem bytes an
// item, which detect an id used twice.
//
//	                     Reader
//	       ┌───────────────────────────────────┐
//	file ─▶│ unpack ─▶ lines or rows ─▶ format │─▶ Request: body, endpoint, model, id, key
//	       │    ─▶ form ─▶ body ─▶ id, key     │
//	       └──────┬──────────┬──────────┬──────┘
//	              └──────────┴──────────┴─▶ LineError: file, line, reason, advice
//
// The reader tells seven forms of line apart, line by line:
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
// The package does not know which forms a provider takes: Config.Serves lists the
// provider's operations, and the reader calls Config.Takes for each request. It never
// changes a line for a provider.
//
// A Key ties a request to its result, wherever its line stands later. Package journal deals
// with the results.
package prompts
