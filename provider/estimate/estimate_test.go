package estimate

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// Estimates are near counts that OpenAI's tokenizers are published or known to
// give; short texts may be off by two tokens.
func TestTextTokensNearKnownCounts(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64 // by o200k_base
	}{
		{"", 0},
		{"tiktoken is great!", 6},
		{"2 + 2 = 4", 7},
		{"お誕生日おめでとう", 8},
		{"1234567890", 4},
		{"Rate limits are a common reason for slow batches, and waiting in every worker makes them slower.", 19},
		{"Die Geschwindigkeit, mit der ein Anbieter antwortet, hängt von seiner Auslastung ab.", 18},
		{"今天天气很好，我们去公园散步吧。", 12},
		{"안녕하세요, 만나서 반갑습니다.", 9},
		{"for i := range 3 { defer fmt.Println(i) }", 13},
		{`{"id": 17, "name": "anna", "ok": true}`, 17},
	} {
		got := Text([]byte(tt.text))
		if math.Abs(got-tt.want) > max(2, 0.3*tt.want) {
			t.Errorf("%q: %.2f, want about %v", tt.text, got, tt.want)
		}
	}
}

// A word goes on from small to accented letters; a capital in it begins another.
func TestTextTokensOfWords(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
	}{
		{"cat", 0.82},
		{" cat", 0.82},
		{"horses", 0.82 + 2*0.2},
		{"strengthened", 0.82 + 4*0.2 + 4*0.65},
		{"getUserName", 3 * 0.82},
		{"URL", 0.82 + 2*0.5},
		{"für", 0.82 + 0.6},
		{"Äpfel", 0.82 + 0.6 + 0.2},
		{"1234", 2},
		{"a 1234567", 0.82 + 4},
		{"a1", 1.82},
		{"...", 0.8 + 2*0.25},
		{"\n\n    x", 0.5 + 0.5 + 2*0.02 + 0.82},
		{"мир", 1.27 + 2*0.17},
		{"👍", 1.9},
	} {
		if got := Text([]byte(tt.text)); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
		}
	}
}

// Every byte string has an estimate: finite, not negative, and no more than two
// tokens a byte.
func FuzzTextTokens(f *testing.F) {
	for _, s := range []string{"", "héllo", "\xff\xfe", "\xe4\xbd", "\xf0\x9f\x91", "日本語", "a\x00b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := Text(text)
		if n < 0 || n > 2*float64(len(text)) {
			t.Errorf("%q: %v", text, n)
		}
		if slow := weighSlowly(text); slow != n {
			t.Errorf("%q: %v, character by character %v", text, n, slow)
		}
		if utf8.Valid(text) && strings.TrimLeft(string(text), " \t") != "" && n == 0 {
			t.Errorf("%q weighs nothing", text)
		}
	})
}

// The example that OpenAI's cookbook counts: 124 tokens for gpt-4o, 129 for gpt-4.
func TestPromptTokensOfCookbook(t *testing.T) {
	const body = `{"model":"gpt-4o","messages":[
		{"role":"system","content":"You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
		{"role":"system","name":"example_user","content":"New synergies will help drive top-line growth."},
		{"role":"system","name":"example_assistant","content":"Things working well together will increase revenue."},
		{"role":"system","name":"example_user","content":"Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
		{"role":"system","name":"example_assistant","content":"Let's talk later when we're less busy about how to do better."},
		{"role":"user","content":"This late pivot means we don't have time to boil the ocean for the client deliverable."}]}`
	if got := Prompt([]byte(body)); got < 110 || got > 142 {
		t.Errorf("%.1f tokens, want 124 give or take 15 %%", got)
	}
}

// Whatever a model reads counts, in every dialect, and nothing else does.
func TestPromptTokens(t *testing.T) {
	const cat = 0.82
	for _, tt := range []struct {
		body string
		want float64
	}{
		{`{"messages":[{"role":"user","content":"cat"}]}`, 4 + cat},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"cat"},{"type":"text","text":"cat"}]}]}`, 4 + 2*cat},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`, 4 + 765},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"low"}}]}]}`, 4 + 85},
		{`{"input":[{"role":"user","content":[{"type":"input_image","detail":"low","image_url":"u"},{"type":"input_text","text":"cat"}]}]}`, 85 + cat},
		{`{"system":[{"type":"text","text":"cat","cache_control":{"type":"ephemeral"}}],"messages":[]}`, cat},
		{`{"instructions":"cat","input":"cat"}`, 2 * cat},
		{`{"contents":[{"role":"user","parts":[{"text":"cat"},{"text":"cat","thoughtSignature":"AAAA"}]}],"systemInstruction":{"parts":[{"text":"cat"}]}}`, 4 + 3*cat},
		{`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"text":"cat"}]}],"generationConfig":{"stopSequences":["cat"]}}`, 4 + 765 + cat},
		{`{"system":[{"text":"cat"}],"messages":[{"role":"user","content":[{"text":"cat"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}]}`, 4 + 765 + 2*cat},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"cat","image":"cat"}]}]}`, 4 + 2*cat},
		{`{"input":["cat","cat"]}`, 2 * cat},
		{`{"query":"cat"}`, cat},
		{`{"query":"cat","documents":[]}`, cat},
		{`{"query":"cat","documents":["cat",{"text":"cat"},"cat"]}`, 3*cat + 3*cat},
		{`{"documents":["cat","cat"],"query":"cat"}`, 2*cat + 2*cat},
		{`{"messages":[{"role":"user","content":"cat"}],"documents":["cat","cat"],"query":"cat"}`, 4 + cat + 3*cat},
		{`{"prompt":[17,4,1999]}`, 3},
		{`{"prompt":[[17],[4]]}`, 2},
		{`{"model":"cat","temperature":1,"user":"cat"}`, 0},
		{`{"tools":[]}`, 0.8 + 0.25},
		{`not json`, 0},
		{`[]`, 0},
		{`{"input":` + strings.Repeat("[", 32) + `"cat"` + strings.Repeat("]", 32) + `}`, cat},
		{`{"input":` + strings.Repeat("[", 33) + `"cat"` + strings.Repeat("]", 33) + `}`, 0},
		{`{"input":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, 0},
	} {
		if got := Prompt([]byte(tt.body)); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%.100s: %v, want %v", tt.body, got, tt.want)
		}
	}
}

// The most that may be written is known by three names, and counts for each answer.
func TestMaxOutput(t *testing.T) {
	for body, want := range map[string]float64{
		`{}`:                                   0,
		`{"max_tokens":10}`:                    10,
		`{"max_completion_tokens":11}`:         11,
		`{"max_output_tokens":12}`:             12,
		`{"max_tokens":10,"n":3}`:              30,
		`{"max_tokens":-5}`:                    0,
		`{"max_tokens":"ten"}`:                 0,
		`{"max_tokens":10,"best_of":null}`:     10,
		`{"n":1e400}`:                          0,
		`{"inferenceConfig":{"maxTokens":13}}`: 13,
		`{"generationConfig":{"maxOutputTokens":14,"candidateCount":2}}`: 28,
		`{"generationConfig":14}`: 0,
	} {
		if got := MaxOutput([]byte(body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

// Estimating costs no memory, and less time than reading the file did.
func BenchmarkTextTokens(b *testing.B) {
	for name, text := range map[string]string{
		"english": "Rate limits are a common reason for slow batches, and waiting in every worker makes them slower. ",
		"json":    `{"id": 12345, "name": "some value", "tags": ["a", "b"], "when": "2026-01-02T03:04:05Z"}` + "\n",
		"chinese": "今天天气很好，我们去公园散步吧。",
	} {
		b.Run(name, func(b *testing.B) {
			body := []byte(strings.Repeat(text, 100))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				Text(body)
			}
		})
	}
}

func BenchmarkPromptTokens(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"system","content":"You are brief."},{"role":"user","content":"` +
		strings.Repeat("Why is the sky blue at noon and red in the evening? ", 20) + `"}],"max_tokens":100}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Prompt(body)
	}
}

// BenchmarkRequest: a prompt of 300 bytes, as it is estimated when it is read: no memory, one walk.
func BenchmarkRequest(b *testing.B) {
	body := []byte(`{"model":"bench-1","messages":[{"role":"user","content":"00000012 ` +
		strings.Repeat("which rivers does it cross ", 12)[:209] + `"}],"max_tokens":50}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Request(body)
	}
}
