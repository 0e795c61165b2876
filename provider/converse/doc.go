// Package converse speaks the dialect of Bedrock's Converse, which is one for all of
// Bedrock's models, and puts embeddings into InvokeModel, which is not: it says what is sent
// where and how answers are read, also those of ConverseStream, which come in messages of
// Amazon's event streams. catalog.Client makes a client.
//
//	                  POST /model/{model}/converse, /model/{model}/invoke
//	Request ─▶ Body ─▶ a bearer key, or a signature ─▶ the provider
//	(no model: refused)                                     │
//	                                                        ▼
//	Reply ◀── {output: {message}, stopReason, usage}   Answer, Text
//	*Error ◀─ a name in x-amzn-errortype or __type, and what words.go makes of it
//
// It promises that a body in Converse's words goes out byte for byte, that input tokens have
// those of caches in them, which some models count apart, and that whatever stands in a
// model's id, such as an ARN, it is one segment of the path.
package converse
