package provider

import (
	"slices"
	"testing"
)

// A provider is known by name, else by its host; what is at one's own address is
// local, and what is neither is generic.
func TestPresetFor(t *testing.T) {
	for _, tt := range []struct{ name, base, want string }{
		{"", "", "openai"},
		{"auto", "", "openai"},
		{"Groq", "", "groq"},
		{"openai", "http://127.0.0.1:8080/v1", "openai"},
		{"auto", "https://api.openai.com/v1", "openai"},
		{"auto", "https://API.OpenAI.com./v1", "openai"},
		{"auto", "https://eu.api.openai.com/v1", "openai"},
		{"auto", "https://evilapi.openai.com.example.com/v1", "generic"},
		{"auto", "https://myapi.groq.com.evil/v1", "generic"},
		{"auto", "https://notopenrouter.ai/v1", "generic"},
		{"auto", "https://me.openai.azure.com/openai/v1", "azure"},
		{"auto", "https://api.anthropic.com/v1", "anthropic"},
		{"auto", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini"},
		{"auto", "https://api.groq.com/openai/v1", "groq"},
		{"auto", "https://api.together.xyz/v1", "together"},
		{"auto", "https://openrouter.ai/api/v1", "openrouter"},
		{"auto", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "bedrock"},
		{"auto", "http://localhost:11434/v1", "local"},
		{"auto", "http://127.0.0.1:8000/v1", "local"},
		{"auto", "http://[::1]:8000/v1", "local"},
		{"auto", "http://[fe80::1%25eth0]:8000/v1", "local"},
		{"auto", "http://10.1.2.3/v1", "local"},
		{"auto", "http://192.168.0.7:8000/v1", "local"},
		{"auto", "http://172.32.0.1/v1", "generic"},
		{"auto", "http://vllm:8000/v1", "local"},
		{"auto", "http://gpu.local:8000/v1", "local"},
		{"auto", "https://llm.example.com/v1", "generic"},
		{"auto", "://", "generic"},
		{"nobody", "http://vllm:8000/v1", "local"},
	} {
		if got := PresetFor(tt.name, tt.base); got.Name != tt.want || got.Local != (tt.want == "local") {
			t.Errorf("%s %s: %+v, want %s", tt.name, tt.base, got, tt.want)
		}
	}
}

// Each provider charges by its own rule. The prompt here is 4.82 tokens.
func TestCharge(t *testing.T) {
	const input = 4.82
	ask := func(more string) []byte {
		return []byte(`{"messages":[{"role":"user","content":"cat"}]` + more + `}`)
	}
	for _, tt := range []struct {
		name, more string
		output     float64
	}{
		{"openai", ``, 0},
		{"openai", `,"max_tokens":100`, 100 - input}, // the greater of both, as a sum
		{"openai", `,"max_tokens":2`, 0},
		{"generic", `,"max_tokens":100`, 100 - input},
		{"vllm", `,"max_tokens":100`, 100 - input},
		{"bedrock", `,"max_tokens":100`, 100},
		{"bedrock", ``, BedrockOutput},
		{"anthropic", `,"max_tokens":64000`, ExpectedOutput},
		{"anthropic", `,"max_tokens":50`, 50},
		{"anthropic", ``, ExpectedOutput},
		{"gemini", `,"max_tokens":100`, 0},
	} {
		in, out := PresetFor(tt.name, "").Charge(ask(tt.more))
		if in != input || out != tt.output {
			t.Errorf("%s%s: %v and %v, want %v and %v", tt.name, tt.more, in, out, input, tt.output)
		}
	}
}

// The zero preset charges like OpenAI's.
func TestZeroPreset(t *testing.T) {
	if in, out := (Preset{}).Charge([]byte(`{"prompt":[1,2],"max_tokens":5}`)); in != 2 || out != 3 {
		t.Errorf("%v and %v", in, out)
	}
}

// Servers of one's own are local.
func TestPresetLocal(t *testing.T) {
	for _, name := range []string{"vllm", "llamacpp", "ollama"} {
		if !PresetFor(name, "").Local {
			t.Errorf("%s is local", name)
		}
	}
}

// Names are in order, so that a message can list them.
func TestPresetNames(t *testing.T) {
	names := PresetNames()
	if !slices.IsSorted(names) || len(names) != len(presets) {
		t.Errorf("%q", names)
	}
}
