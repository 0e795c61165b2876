package gemini

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat/chattest"
)

type content struct {
	Role  string
	Parts []struct {
		Text       string
		InlineData *struct{ MimeType, Data string }
		Call       *struct {
			ID, Name string
			Args     json.RawMessage
		} `json:"functionCall"`
		Result *struct {
			ID, Name string
			Response struct{ Output string }
		} `json:"functionResponse"`
	}
}

// said reads what a generateContent body says, as chattest.Said reads a chat.
func said(sent []byte) (all []string) {
	var body struct {
		SystemInstruction content
		Contents          []content
	}
	_ = json.Unmarshal(sent, &body)
	body.SystemInstruction.Role = "system"
	for _, c := range append([]content{body.SystemInstruction}, body.Contents...) {
		for _, p := range c.Parts {
			switch {
			case p.InlineData != nil && p.InlineData.MimeType == "application/pdf":
				all = append(all, chattest.File(p.InlineData.Data))
			case p.InlineData != nil:
				all = append(all, chattest.Image(p.InlineData.MimeType, p.InlineData.Data))
			case p.Call != nil:
				all = append(all, chattest.Call(p.Call.ID, p.Call.Name, p.Call.Args))
			case p.Result != nil && p.Result.Name != "":
				all = append(all, chattest.Result(p.Result.ID, p.Result.Response.Output))
			default:
				all = append(all, chattest.Text(strings.Replace(c.Role, "model", "assistant", 1), p.Text))
			}
		}
	}
	return all
}

// A body of every shape, and what is sent for it.
func TestFromChat(t *testing.T) {
	for name, row := range map[string]struct{ chat, want string }{
		"text": {
			`{"model":"gpt","messages":[{"role":"system","content":"s"},{"role":"developer","content":[{"type":"text","text":"d\u00e9\/"}]},
			  {"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]},{"role":"assistant","content":"d"},{"role":"user","content":"e"}],
			  "max_completion_tokens":5,"temperature":1.50,"top_p":0.5,"seed":-3,"stop":["x","\n"],"tools":[],"logit_bias":{}}`,
			`{"systemInstruction":{"parts":[{"text":"s"},{"text":"d\u00e9\/"}]},"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"},{"text":"c"}]},` +
				`{"role":"model","parts":[{"text":"d"}]},{"role":"user","parts":[{"text":"e"}]}],` +
				`"generationConfig":{"maxOutputTokens":5,"temperature":1.50,"topP":0.5,"seed":-3,"stopSequences":["x","\n"]}}`,
		},
		"nothing but a question": {`{"messages":[{"role":"user","content":"a"}]}`, `{"contents":[{"role":"user","parts":[{"text":"a"}]}]}`},
		"image": {
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/webp;base64,AAAA"}}]}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/webp","data":"AAAA"}}]}]}`,
		},
		"file": {
			`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA\/="}}]}]}`,
			`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"AA\/="}}]}]}`,
		},
		"tools": {
			`{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object", "oneOf":[]}}},{"type":"function","function":{"name":"_g"}}],
			  "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},
			  {"id":"2","type":"function","function":{"name":"_g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"2","content":"{\"r\":2}"},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"r1"}]},{"role":"user","content":"c"}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"},{"functionCall":{"id":"1","name":"f","args":{"a": 1}},"thoughtSignature":"skip_thought_signature_validator"},` +
				`{"functionCall":{"id":"2","name":"_g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"2","name":"_g","response":{"output":"{\"r\":2}"}}},` +
				`{"functionResponse":{"id":"1","name":"f","response":{"output":"r1"}}}]},{"role":"user","parts":[{"text":"c"}]}],` +
				`"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object", "oneOf":[]}},{"name":"_g"}]}]}`,
		},
		"any JSON": {
			`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_object"}}`,
			`{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"responseMimeType":"application/json"}}`,
		},
		"schema": {
			`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"type":"number","maximum":3}}}}}}`,
			`{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"a":{"type":"number","maximum":3}}}}}`,
		},
	} {
		sent, err := FromChat(provider.Request{Model: "gemini-3", Body: []byte(row.chat)}, provider.Defaults{MaxTokens: 9})
		if err != nil || string(sent) != row.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, sent, row.want)
		}
	}
}

// How tools are used: strict ones are held to their schemas. Only a named one is named.
func TestFromChatToolChoice(t *testing.T) {
	for choice, want := range map[string]string{
		`"auto"`:     ``,
		`"none"`:     `,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`,
		`"required"`: `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`,
		`{"type":"function","function":{"name":"f"}}`: `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`,
		`"auto","max_tokens":1`:                       `,"generationConfig":{"maxOutputTokens":1}`,
	} {
		for _, strict := range []string{"false", "true"} {
			if strict == "true" && strings.HasPrefix(choice, `"auto"`) {
				want = `,"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED"}}` + want
			}
			want := `{"contents":[{"role":"user","parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}}]}]` + want + `}`
			body := `{"tools":[{"type":"function","function":{"name":"f","strict":` + strict + `,"parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"a"}],"tool_choice":` + choice + `}`
			if sent, err := FromChat(provider.Request{Model: "gemini-3", Body: []byte(body)}, provider.Defaults{}); err != nil || string(sent) != want {
				t.Errorf("%s, strict %s: %v\n got %s\nwant %s", choice, strict, err, sent, want)
			}
		}
	}
}

// Models before Gemini 3 want no signature with calls.
func TestFromChatSignature(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]}`
	for model, want := range map[string]bool{
		"gemini-3-pro-preview": true, "gemini-flash-latest": true, "gemini-4-argon": true, "models/gemini-3.1-pro": true,
		"gemini-2.5-pro": false, "models/gemini-2.0-flash": false, "gemini-1.5-pro": false,
	} {
		sent, err := FromChat(provider.Request{Model: model, Body: []byte(body)}, provider.Defaults{})
		if err != nil || strings.Contains(string(sent), "thoughtSignature") != want {
			t.Errorf("%s: %s, %v", model, sent, err)
		}
	}
}

// A word that is not known stands in quotes in the error: it is whatever somebody wrote.
func TestUnknownEffortIsQuoted(t *testing.T) {
	_, err := FromChat(provider.Request{Model: "gemini-2.5-pro", Body: []byte(`{"reasoning_effort":"\u001b[31mhigh","messages":[{"role":"user","content":"a"}]}`)}, provider.Defaults{})
	if want := `reasoning_effort: is "\x1b[31mhigh", which`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want %q in it", err, want)
	}
}

// reasoning_effort comes to what Google's table says, by the model. Elsewhere it is refused.
func TestFromChatEffort(t *testing.T) {
	efforts := []string{"none", "minimal", "low", "medium", "high", "xhigh"}
	for model, want := range map[string]string{
		"gemini-2.5-flash":              `0 1024 1024 8192 24576 -`,
		"models/gemini-2.5-flash-lite":  `0 1024 1024 8192 24576 -`,
		"gemini-2.5-pro":                `- 1024 1024 8192 24576 -`,
		"gemini-3.1-pro-preview":        `- "LOW" "LOW" "MEDIUM" "HIGH" -`,
		"gemini-3.1-flash-lite-preview": `- "MINIMAL" "LOW" "MEDIUM" "HIGH" -`,
		"gemini-3-flash-preview":        `- "MINIMAL" "LOW" "MEDIUM" "HIGH" -`,
		"gemini-2.0-flash":              `- - - - - -`,
		"gemini-flash-latest":           `- - - - - -`,
		"":                              `- - - - - -`,
	} {
		for i, value := range strings.Fields(want) {
			member := "thinkingLevel"
			if value[0] != '"' {
				member = "thinkingBudget"
			}
			want := `{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"thinkingConfig":{"` + member + `":` + value + `}}}`
			sent, err := FromChat(provider.Request{Model: model, Body: []byte(`{"reasoning_effort":"` + efforts[i] + `","messages":[{"role":"user","content":"a"}]}`)}, provider.Defaults{})
			why := new(provider.Untranslatable)
			switch refused := errors.As(err, &why) && why.Field == "reasoning_effort"; {
			case refused != (value == "-"):
				t.Errorf("%s: %s: %v", model, efforts[i], err)
			case !refused && string(sent) != want:
				t.Errorf("%s: %s: got %s, want %s", model, efforts[i], sent, want)
			}
		}
	}
}

// mayRefuse reports whether Gemini may refuse a field of a random body: tools of which only some
// are strict, and results in several parts.
func mayRefuse(field string) bool {
	return strings.HasSuffix(field, ".function.strict") || strings.HasPrefix(field, "messages[") && strings.HasSuffix(field, "].content")
}

func TestFromChatRandomBodies(t *testing.T) {
	chattest.CheckBodies(t, 2000, chattest.Images|chattest.Files|chattest.FreeJSON|chattest.Schemas|chattest.Tools|chattest.ResultParts|chattest.Extremes, FromChat, said, mayRefuse)
}

// FuzzFromChat: any text is refused by name or translated without loss.
func FuzzFromChat(f *testing.F) {
	chattest.Seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) { chattest.Check(t, FromChat, said, body) })
}
