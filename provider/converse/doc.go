// Package converse speaks the dialect of Bedrock's Converse, which is one for all of Bedrock's
// models. It puts embeddings into InvokeModel, whose bodies differ by maker. It says where to send
// what, and how to read answers. Those of ConverseStream come in messages of Amazon's event
// streams. catalog.Client makes a client.
//
//	                  POST /model/{model}/converse, /model/{model}/invoke
//	Request ─▶ Body ─▶ a bearer key, or a signature ─▶ the provider
//	(no model: refused)                                     │
//	                                                        ▼
//	Reply ◀── {output: {message}, stopReason, usage}   Answer, Text
//	*Error ◀─ a name in x-amzn-errortype or __type, and what dialect.go makes of it
//
// It promises that a body in Converse's words goes out byte for byte. Input tokens include those
// of caches, which some models count apart. A model's id, such as an ARN, is one segment of the
// path, whatever stands in it.
package converse
