package prompts

import "fmt"

func ExampleKey() {
	a := Key(ChatCompletions, []byte(`{"model":"m","n":1}`), "")
	b := Key(ChatCompletions, []byte(`{ "n": 1, "model": "m" }`), "")
	fmt.Println(a == b, len(a))
	// Output: true 32
}
