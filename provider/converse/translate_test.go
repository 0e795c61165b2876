package converse

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat/chattest"
)

type block struct {
	Text  *string
	Image *struct {
		Format string
		Source struct{ Bytes string }
	}
	Document *struct {
		Format, Name string
		Source       struct{ Bytes string }
	}
	ToolUse *struct {
		ToolUseID, Name string
		Input           json.RawMessage
	}
	ToolResult *struct {
		ToolUseID string
		Content   []any
	}
}

// documentName matches the names that AWS allows.
var documentName = regexp.MustCompile(`^[A-Za-z0-9()\[\]-]+( [A-Za-z0-9()\[\]-]+)*$`)

// piece is a block as chattest.Said has it.
func (b *block) piece(role string) string {
	switch {
	case b.Text != nil:
		return chattest.Text(role, *b.Text)
	case b.Image != nil:
		return chattest.Image("image/"+b.Image.Format, b.Image.Source.Bytes)
	case b.Document != nil && b.Document.Format == "pdf" && documentName.MatchString(b.Document.Name):
		return chattest.File(b.Document.Source.Bytes)
	case b.ToolUse != nil:
		return chattest.Call(b.ToolUse.ToolUseID, b.ToolUse.Name, b.ToolUse.Input)
	case b.ToolResult != nil:
		return chattest.Result(b.ToolResult.ToolUseID, b.ToolResult.Content)
	}
	return "nothing"
}

// said reads what a Converse body says, as chattest.Said reads a chat. Two turns of one role
// are a fault.
func said(sent []byte) (all []string) {
	var body struct {
		System   []block
		Messages []struct {
			Role    string
			Content []block
		}
	}
	_ = json.Unmarshal(sent, &body)
	for _, b := range body.System {
		all = append(all, b.piece("system"))
	}
	for i, m := range body.Messages {
		if i > 0 && body.Messages[i-1].Role == m.Role {
			all = append(all, "two turns of one role")
		}
		for _, b := range m.Content {
			all = append(all, b.piece(m.Role))
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
			  "max_tokens":5,"temperature":0.50,"top_p":0.5,"stop":["x","\n"]}`,
			`{"system":[{"text":"s"},{"text":"d\u00e9\/"}],"messages":[{"role":"user","content":[{"text":"a"},{"text":"b"},{"text":"c"}]},` +
				`{"role":"assistant","content":[{"text":"d"}]},{"role":"user","content":[{"text":"e"}]}],` +
				`"inferenceConfig":{"maxTokens":5,"temperature":0.50,"topP":0.5,"stopSequences":["x","\n"]}}`,
		},
		"nothing but a question": {`{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[{"role":"user","content":[{"text":"a"}]}]}`},
		"image": {
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,AAAA"}}]}]}`,
			`{"messages":[{"role":"user","content":[{"image":{"format":"gif","source":{"bytes":"AAAA"}}}]}]}`,
		},
		"file before text": {
			`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]},{"role":"user","content":"a"}]}`,
			`{"messages":[{"role":"user","content":[{"document":{"format":"pdf","name":"document-0-0","source":{"bytes":"AAAA"}}},{"text":"a"}]}]}`,
		},
		"files": {
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}]},
			  {"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}]},
			  {"role":"assistant","content":"b"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
			`{"messages":[{"role":"user","content":[{"text":"a"},{"document":{"format":"pdf","name":"document-0-1","source":{"bytes":"AAAA"}}},` +
				`{"document":{"format":"pdf","name":"document-1-0","source":{"bytes":"AAAA"}}}]},{"role":"assistant","content":[{"text":"b"}]},` +
				`{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}]}`,
		},
		"schema": {
			`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","strict":true,"schema":{"type":"object", "description":"\"é\u00e9"}}}}`,
			`{"messages":[{"role":"user","content":[{"text":"a"}]}],"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":` +
				`{"name":"n","description":"d","schema":"{\"type\":\"object\", \"description\":\"\\\"é\\u00e9\"}"}}}}}`,
		},
		"tools": {
			`{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],"tool_choice":"required",
			  "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},
			  {"role":"tool","tool_call_id":"1","content":"r1"},{"role":"user","content":"c"},{"role":"assistant","tool_calls":[{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]},
			  {"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"r2"},{"type":"text","text":"r3"}]}]}`,
			`{"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"b"},{"toolUse":{"toolUseId":"1","name":"f","input":{"a": 1}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"r1"}]}},{"text":"c"}]},` +
				`{"role":"assistant","content":[{"toolUse":{"toolUseId":"2","name":"f","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"2","content":[{"text":"r2"},{"text":"r3"}]}}]}],` +
				`"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"d","inputSchema":{"json":{"type":"object"}},"strict":true}}],"toolChoice":{"any":{}}}}`,
		},
		"one tool": {
			`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[{"role":"user","content":"a"}]}`,
			`{"messages":[{"role":"user","content":[{"text":"a"}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"tool":{"name":"f"}}}}`,
		},
	} {
		sent, err := FromChat(provider.Request{Model: "nova", Body: []byte(row.chat)}, provider.Defaults{MaxTokens: 9})
		if err != nil || string(sent) != row.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, sent, row.want)
		}
	}
}

func TestFromChatRandomBodies(t *testing.T) {
	chattest.CheckBodies(t, 2000, chattest.Images|chattest.Files|chattest.Schemas|chattest.Tools|chattest.Extremes|chattest.ResultParts, FromChat, said,
		func(field string) bool {
			return field == "seed" || field == "temperature" || strings.HasSuffix(field, ".file")
		})
}

// Claude takes at most one of temperature and top_p, and both are 1 unless the request has them. To other
// models 1 is a value like any other.
func TestFromChatOnes(t *testing.T) {
	for model, config := range map[string]string{
		"us.anthropic.claude-haiku-4-5-20251001-v1:0":       `"inferenceConfig":{"topP":0.5}`,
		"arn:aws:bedrock:eu-west-1::model/anthropic.claude": `"inferenceConfig":{"topP":0.5}`,
		"amazon.nova-lite-v1:0":                             `"inferenceConfig":{"temperature":1.0,"topP":0.5}`,
	} {
		sent, err := FromChat(provider.Request{Model: model, Body: []byte(`{"temperature":1.0,"top_p":0.5,"messages":[{"role":"user","content":"a"}]}`)}, provider.Defaults{})
		if want := `{"messages":[{"role":"user","content":[{"text":"a"}]}],` + config + `}`; err != nil || string(sent) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", model, err, sent, want)
		}
	}
}

// FuzzFromChat: any text is refused by name or translated without loss.
func FuzzFromChat(f *testing.F) {
	chattest.Seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) { chattest.Check(t, FromChat, said, body) })
}
