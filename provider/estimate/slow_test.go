package estimate

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// weighSlowly runs the automaton over a text, a character at a time.
func weighSlowly(text []byte) float64 {
	var s scale
	for i := 0; i < len(text); {
		size, kind := 1, asciis[text[i]]
		if text[i] >= 0x80 {
			kind, size = classBeyondASCII(text, i)
		}
		s.state = automaton[s.state][kind]
		s.sum += int(weight[s.state])
		i += size
	}
	return s.tokens()
}

// promptSlowly and mostSlowly say what estimate does, with a walk for each question.
func promptSlowly(body []byte) float64 {
	var n, query, ranked float64
	gjson.ParseBytes(body).ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "query":
			query += contentSlowly(value, maxNesting)
		case "documents":
			n += contentSlowly(value, maxNesting)
			if ranked++; value.IsArray() {
				ranked += float64(len(value.Array())) - 1
			}
		case "messages":
			ranked = math.Inf(-1)
			var chat float64
			value.ForEach(func(_, message gjson.Result) bool {
				chat += messageTokens + contentSlowly(message, maxNesting)
				return true
			})
			n += chat
		case "input", "prompt", "instructions", "system":
			n += contentSlowly(value, maxNesting)
		case "tools", "functions", "response_format", "text":
			n += weighSlowly([]byte(value.Raw))
		}
		return true
	})
	return n + query*max(1, ranked)
}

func contentSlowly(v gjson.Result, depth int) float64 {
	switch {
	case v.Type == gjson.String:
		var text string // by encoding/json: gjson drops what follows half a surrogate pair
		_ = json.Unmarshal([]byte(v.Raw), &text)
		return weighSlowly([]byte(text))
	case v.Type == gjson.Number:
		return 1
	case !v.IsArray() && !v.IsObject(), depth == 0:
		return 0
	}
	if n, ok := attachmentSlowly(v); ok {
		return n
	}
	var n float64
	v.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "role", "type", "id", "cache_control", "index":
			return true
		}
		n += contentSlowly(value, depth-1)
		return true
	})
	return n
}

func attachmentSlowly(part gjson.Result) (float64, bool) {
	if !part.IsObject() {
		return 0, false
	}
	switch part.Get("type").Str {
	case "image_url", "input_image", "image":
		if part.Get("detail").Str == "low" || part.Get("image_url.detail").Str == "low" {
			return lowDetailTokens, true
		}
		return pictureTokens, true
	case "input_audio", "file", "input_file", "document":
		return pictureTokens, true
	}
	return 0, false
}

func mostSlowly(body []byte) float64 {
	most, answers := 0.0, 1.0
	gjson.ParseBytes(body).ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			most = max(most, value.Num)
		case "n", "best_of":
			answers = max(answers, value.Num)
		}
		return true
	})
	if most == 0 {
		return 0
	}
	return most * answers
}

// checkRequest holds the estimate of a body to its slow twin's, to the last bit.
func checkRequest(t *testing.T, body []byte) {
	t.Helper()
	prompt, most := Request(body)
	if want := promptSlowly(body); prompt != want {
		t.Fatalf("%s: a prompt of %v tokens, slowly %v", body, prompt, want)
	}
	if want := mostSlowly(body); most != want {
		t.Fatalf("%s: at most %v tokens, slowly %v", body, most, want)
	}
}

// Names and scalars that bodies are made of, and some that only look like them.
var (
	bodyNames = []string{
		"messages", "input", "prompt", "instructions", "system", "tools", "text", "content", "role", "type",
		"image_url", "detail", "max_tokens", "max_completion_tokens", "n", "best_of", "query", "documents", "id", "mess\\u0061ges", "d\\u0065tail", "x",
	}
	bodyScalars = []string{
		`"cat"`, `"image_url"`, `"input_audio"`, `"low"`, `"l\u006fw"`, `"text"`, `"user"`, `""`, "1", "-2.5e1", "1e400", "12345678901234567890",
		"null", "true", "false", `"a \"quoted\" w\\ord\n\tthen"`, `"für 今天天气 \u4eca\u5929"`, `"\ud83d\ude00 \ud83d x \ude00\ud83d\u0041"`,
		`"ends in \\"`, `"a longer text of plain words, with 12345 digits"`,
	}
)

// randomJSON appends a value to b; deeper ones are rarer.
func randomJSON(rng *rand.Rand, b []byte, depth int) []byte {
	space := func() { b = append(b, []string{"", "", " ", "\n\t"}[rng.IntN(4)]...) }
	n, object := rng.IntN(5), rng.IntN(2) == 0
	if depth == 0 || rng.IntN(3) == 0 {
		return append(b, bodyScalars[rng.IntN(len(bodyScalars))]...)
	}
	b = append(b, "[{"[btoi(object)])
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if space(); object {
			b = append(append(append(b, '"'), bodyNames[rng.IntN(len(bodyNames))]...), '"')
			space()
			b = append(b, ':')
			space()
		}
		b = randomJSON(rng, b, depth-1)
		space()
	}
	return append(b, "]}"[btoi(object)])
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// One walk over a body finds what one for each question found, on bodies of every shape.
func TestRequestAsSlowly(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 100_000 {
		checkRequest(t, randomJSON(rng, nil, 5))
	}
}

// FuzzRequest: the walk agrees with its slow twin on valid bodies, and comes to an
// end with a sane answer on all others.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"low"}}]}],"n":2,"max_tokens":1e2}`,
		`{"messages":{"a":"b"},"input":[[1],[2,"x"]],"tools":[{}],"prompt":"\ud83d\ude00"}`, `{"prompt":"a`, `{"a"`, `{"prompt":[}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if gjson.ValidBytes(body) && utf8.Valid(body) {
			checkRequest(t, body)
			return
		}
		if prompt, most := Request(body); !(prompt >= 0 && most >= 0) {
			t.Errorf("%q: %v and %v", body, prompt, most)
		}
	})
}
