package clients

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"google.golang.org/genai"

	"github.com/headrace/headrace/provider"
	headraceanthropic "github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/chat/chattest"
	headracegemini "github.com/headrace/headrace/provider/gemini"
)

// bodies is the number of random chats that the test translates.
const bodies = 500

// generateContent is the body of a call, made of what genai has for its parts.
type generateContent struct {
	SystemInstruction *genai.Content          `json:"systemInstruction,omitempty"`
	Contents          []*genai.Content        `json:"contents"`
	Tools             []*genai.Tool           `json:"tools,omitempty"`
	ToolConfig        *genai.ToolConfig       `json:"toolConfig,omitempty"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig,omitempty"`
}

// The types of Anthropic's client know each field of a chat that was translated, and say the
// same when they are written again.
func TestAnthropicKnowsEveryField(t *testing.T) {
	t.Parallel()
	with := chattest.Images | chattest.Links | chattest.Files | chattest.Schemas | chattest.Tools | chattest.ResultParts | chattest.Users
	eachBody(t, with, headraceanthropic.FromChat, func(sent []byte) ([]byte, error) {
		var params anthropic.MessageNewParams
		if err := json.Unmarshal(sent, &params); err != nil {
			return nil, err
		}
		return json.Marshal(params)
	})
}

// So do the types of Google's client.
func TestGenaiKnowsEveryField(t *testing.T) {
	t.Parallel()
	with := chattest.Images | chattest.Files | chattest.Schemas | chattest.FreeJSON | chattest.Tools | chattest.Extremes
	eachBody(t, with, headracegemini.FromChat, func(sent []byte) ([]byte, error) {
		// The word is no base64 of the alphabet that Go's client reads.
		sent = bytes.ReplaceAll(sent, []byte(`,"thoughtSignature":"skip_thought_signature_validator"`), nil)
		var body generateContent
		in := json.NewDecoder(bytes.NewReader(sent))
		in.DisallowUnknownFields()
		if err := in.Decode(&body); err != nil {
			return nil, err
		}
		return json.Marshal(body)
	})
}

// eachBody translates random chats, has again write anew what is sent for each, and compares.
func eachBody(t *testing.T, with chattest.With, fromChat chattest.FromChat, again func([]byte) ([]byte, error)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(17, 17)) //nolint:gosec // bodies are no secret
	for n := 0; n < bodies; {
		body := chattest.Body(rng, with)
		sent, err := fromChat(provider.Request{Model: simModel, Body: body}, provider.Defaults{MaxTokens: bound})
		if err != nil {
			continue
		}
		n++
		written, err := again(sent)
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		if a, b := leveled(t, sent), leveled(t, written); !reflect.DeepEqual(a, b) {
			t.Fatalf("sent    %s\nwritten %s", sent, written)
		}
	}
}

// leveled is a body without what says nothing to either side: the precision of numbers beyond 32
// bits, inputs that are empty, a text alone in place of a list of one, and a signature.
func leveled(t *testing.T, body []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return simple(v)
}

func simple(v any) any {
	switch v := v.(type) {
	case float64:
		return float32(v)
	case []any:
		for i := range v {
			v[i] = simple(v[i])
		}
	case map[string]any:
		delete(v, "thoughtSignature")
		if said, ok := v["content"].(string); ok && v["type"] == "tool_result" { // Anthropic's client makes a list of it
			v["content"] = []any{map[string]any{"type": "text", "text": said}}
		}
		for name, inner := range v {
			if v[name] = simple(inner); name == "args" && len(inner.(map[string]any)) == 0 {
				delete(v, name)
			}
		}
	}
	return v
}
