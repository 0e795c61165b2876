package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat/chattest"
)

// said reads what a Messages body says, as chattest.Said reads a chat.
func said(sent []byte) (all []string) {
	type block struct {
		Type, Text, ID, Name string
		Content              any
		Input                json.RawMessage
		ToolUseID            string `json:"tool_use_id"`
		Source               struct {
			Type, URL, Data string
			MediaType       string `json:"media_type"`
		}
	}
	var body struct {
		System   []block
		Messages []struct {
			Role    string
			Content []block
		}
	}
	_ = json.Unmarshal(sent, &body)
	for _, b := range body.System {
		all = append(all, chattest.Text("system", b.Text))
	}
	for _, m := range body.Messages {
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				all = append(all, chattest.Text(m.Role, b.Text))
			case "image":
				if b.Source.Type == "url" {
					all = append(all, chattest.Link(b.Source.URL))
					continue
				}
				all = append(all, chattest.Image(b.Source.MediaType, b.Source.Data))
			case "document":
				all = append(all, chattest.File(b.Source.Data))
			case "tool_use":
				all = append(all, chattest.Call(b.ID, b.Name, b.Input))
			case "tool_result":
				all = append(all, chattest.Result(b.ToolUseID, b.Content))
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
			  "max_completion_tokens":5,"max_tokens":5,"temperature":1.0,"top_p":0.50,"stop":"x","n":1,"stream":false,"response_format":{"type":"text"}}`,
			`{"model":"claude","max_tokens":5,"system":[{"type":"text","text":"s"},{"type":"text","text":"d\u00e9\/"}],` +
				`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"d"}]},{"role":"user","content":[{"type":"text","text":"e"}]}],` +
				`"top_p":0.50,"stop_sequences":["x"]}`,
		},
		"nothing but defaults": {
			`{"messages":[{"role":"system","content":""},{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[],"annotations":[],"refusal":null},{"role":"user","content":"c"}],
			  "temperature":10e-1,"top_p":1.0,"stop":[],"service_tier":"auto","modalities":["text"],"metadata":{},"n":1,"tools":[],"logit_bias":{}}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c"}]}]}`,
		},
		"top_p alone is a default": {
			`{"temperature":0.3,"top_p":1,"messages":[{"role":"user","content":"a"}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"temperature":0.3}`,
		},
		"bound of the lane": {
			`{"messages":[{"role":"user","content":"a"}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
		},
		"image": {
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"detail":"auto","url":"data:image\/png;base64,AA\/="}},{"type":"text","text":"a"}]}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA\/="}},{"type":"text","text":"a"}]}]}`,
		},
		"user": {
			`{"user":"u-\u0031","messages":[{"role":"user","content":"a"}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"metadata":{"user_id":"u-\u0031"}}`,
		},
		"image of the web": {
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https:\/\/example.com/a?b=1&c=\u00e9","detail":"auto"}}]}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https:\/\/example.com/a?b=1&c=\u00e9"}}]}]}`,
		},
		"files": {
			`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a \"b\".pdf","file_data":"data:application\/pdf;base64,JVBERi0="}},{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a \"b\".pdf"},` +
				`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}]}`,
		},
		"schema": {
			`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object", "properties":{},"required":["a"]}}}}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],` +
				`"output_config":{"format":{"type":"json_schema","schema":{"type":"object", "properties":{},"required":["a"]}}}}`,
		},
		"tools": {
			`{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],"tool_choice":"required","parallel_tool_calls":false,
			  "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},
			  {"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"2","content":"r2"},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"r1"},{"type":"text","text":"r\/"}]}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"a": 1}},{"type":"tool_use","id":"2","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"r2"},{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r1"},{"type":"text","text":"r\/"}]}]}],` +
				`"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}}`,
		},
		"one tool": {
			`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[{"role":"user","content":"a"}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],` +
				`"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"}}`,
		},
		"no tool": {
			`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"none","parallel_tool_calls":false,"messages":[{"role":"user","content":"a"}]}`,
			`{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],` +
				`"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}}`,
		},
	} {
		sent, err := FromChat(provider.Request{Model: "claude", Body: []byte(row.chat)}, provider.Defaults{MaxTokens: 9})
		if err != nil || string(sent) != row.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, sent, row.want)
		}
	}
}

// Without a model of the lane the body's own is asked.
func TestFromChatModel(t *testing.T) {
	r := provider.Request{Body: []byte(`{"model":"a\u0062","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`)}
	sent, err := FromChat(r, provider.Defaults{})
	if err != nil || !strings.HasPrefix(string(sent), `{"model":"a\u0062",`) {
		t.Errorf("got %s, %v", sent, err)
	}
}

func TestFromChatRandomBodies(t *testing.T) {
	chattest.CheckBodies(t, 2000, chattest.Images|chattest.Links|chattest.Files|chattest.Schemas|chattest.Tools|chattest.Extremes|chattest.ResultParts|chattest.Users, FromChat, said,
		func(field string) bool { return field == "seed" || field == "temperature" })
}

// FuzzFromChat: any text is refused by name or translated without loss.
func FuzzFromChat(f *testing.F) {
	chattest.Seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) { chattest.Check(t, FromChat, said, body) })
}

func BenchmarkFromChat(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"` + strings.Repeat("one of many words ", 100) + `"}],"max_tokens":100,"temperature":0.2}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(FromChat(provider.Request{Model: "claude", Body: body}, provider.Defaults{}))(b)
	}
}
