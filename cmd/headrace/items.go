package main

import (
	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/batch/jsonl"
	"github.com/headrace/headrace/limiter"
)

// item is one request of the input on its way through a run.
type item struct {
	jsonl.Request
	lane string // provider/model: one quota
	cost limiter.Cost
}

// Pool is where the item waits: hosted quotas are counted for each model.
func (it *item) Pool() string { return it.lane }

// Cost is what its call is expected to draw.
func (it *item) Cost() limiter.Cost { return it.cost }

// bytesPerToken is the rule of thumb for English prose. It is wrong by a third
// either way, and the real usage puts it right after the call.
const bytesPerToken = 4

// costOf estimates what OpenAI counts when it admits a call: the larger of the
// prompt and what may be written.
func costOf(body []byte) limiter.Cost {
	var text int
	var output float64
	gjson.ParseBytes(body).ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "messages", "input", "prompt", "instructions":
			text += textBytes(value)
		case "tools", "functions", "response_format":
			text += len(value.Raw)
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			output = max(output, value.Num)
		}
		return true
	})
	input := float64((text + bytesPerToken - 1) / bytesPerToken)
	return limiter.Cost{Requests: 1, Input: input, Output: max(0, output-input)}
}

// textBytes is how much of a value a model reads as text: strings, wherever they
// are, but for pictures and sound, which are priced otherwise, and for words
// that only steer.
func textBytes(v gjson.Result) int {
	if !v.IsArray() && !v.IsObject() {
		return len(v.String())
	}
	sum := 0
	v.ForEach(func(name, value gjson.Result) bool {
		switch name.String() {
		case "image_url", "input_audio", "file", "role", "type", "id":
			return true
		}
		sum += textBytes(value)
		return true
	})
	return sum
}
