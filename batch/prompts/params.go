package prompts

// parameters are those that columns of a CSV are sent as, and how a cell is read. Names that are more
// often those of data, such as user, text, n, tools and reasoning, are not among them.
var parameters = map[string]valueKind{
	"max_tokens": aNumber, "max_completion_tokens": aNumber, "max_output_tokens": aNumber,
	"temperature": aNumber, "top_p": aNumber, "top_k": aNumber, "min_p": aNumber, "top_logprobs": aNumber, "seed": aNumber,
	"frequency_penalty": aNumber, "presence_penalty": aNumber, "repetition_penalty": aNumber,
	"logprobs": aTruth, "parallel_tool_calls": aTruth,
	"stop": aText, "stop_sequences": aText, "response_format": aText, "logit_bias": aText,
	"reasoning_effort": aText, "verbosity": aText, "service_tier": aText,
}

// valueKind says how the text of a value is read.
type valueKind uint8

const (
	aText   valueKind = iota // a string, unless it is JSON in brackets or quotes
	aNumber                  // a number as JSON writes it
	aTruth                   // true or false in any case, or a number
)
