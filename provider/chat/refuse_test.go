package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
)

const hi = `{"role":"user","content":"hi"}`

// refused are bodies that no dialect takes, with the field that is named.
var refused = map[string][]string{
	"body": {``, `[]`, `"a"`, `{`, `{"messages":[` + hi + `],}`, `{} {}`},
	// The conversation.
	"messages":                          {`{}`, `{"messages":[]}`, `{"messages":{}}`, `{"messages":null}`, `{"messages":[{"role":"system","content":"s"}]}`, `{"messages":[{"role":"system","content":""}]}`},
	"messages[0]":                       {`{"messages":["hi"]}`, `{"messages":[null]}`},
	"messages[0].role":                  {`{"messages":[{"content":"a"}]}`, `{"messages":[{"role":"assistant","content":"a"},` + hi + `]}`, `{"messages":[{"role":"function","content":"a"}]}`, `{"messages":[{"role":7,"content":"a"}]}`},
	"messages[1].role":                  {`{"messages":[` + hi + `,{"role":"assistant","content":"a"}]}`, `{"messages":[` + hi + `,{"role":"system","content":"a"},` + hi + `]}`, `{"messages":[` + hi + `,{"role":"developer","content":"a"}]}`},
	"messages[0].name":                  {`{"messages":[{"role":"user","content":"a","name":"bob"}]}`},
	"messages[0].cache_control":         {`{"messages":[{"role":"user","content":"a","cache_control":null}]}`},
	`messages[0]."a.b"`:                 {`{"messages":[{"role":"user","content":"a","a.b":null}]}`},
	"messages[0].role2":                 {`{"messages":[{"role2":"user"}]}`},
	"messages[0].content":               {`{"messages":[{"role":"user"}]}`, `{"messages":[{"role":"user","content":null}]}`, `{"messages":[{"role":"user","content":""}]}`, `{"messages":[{"role":"user","content":[]}]}`, `{"messages":[{"role":"user","content":{}}]}`, `{"messages":[{"role":"user","content":"a","content":"b"}]}`},
	"messages[0].content[0].type":       {`{"messages":[{"role":"user","content":[{"text":"a"}]}]}`, `{"messages":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]}`, `{"messages":[{"role":"system","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},` + hi + `]}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"a","image_url":{}}]}]}`, `{"messages":[{"role":"user","content":[{"type":"file","text":"a"}]}]}`, `{"messages":[{"role":"system","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]},` + hi + `]}`},
	"messages[0].content[1].text":       {`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}]}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text"}]}]}`},
	"messages[0].content[0].annotation": {`{"messages":[{"role":"user","content":[{"type":"text","text":"a","annotation":[]}]}]}`},
	"messages[1].refusal":               {`{"messages":[` + hi + `,{"role":"assistant","refusal":"no"},` + hi + `]}`},
	"max_tokens":                        {`{"messages":[` + hi + `],"max_tokens":1,"max_completion_tokens":2}`},
	"stop[1]":                           {`{"messages":[` + hi + `],"stop":["a",""]}`},
	// Images.
	"messages[0].content[0].image_url.url": {
		image(`{"url":"http://example.com/a.png"}`), image(`{"url":"https://"}`), image(`{"url":"image/png;base64,AAAA"}`), image(`{"url":"https:\/\/"}`), image(`{"url":"https:\\example.com"}`), image(`{"url":"data:image/png;base64,"}`), image(`{"url":"data:image/png;base64,AAA"}`), image(`{"url":"data:image/png;base64,AA-_"}`),
		image(`{"url":"data:image/png;base64,AA\u0041A"}`), image(`{"url":"data:image/png;base64,AA\nAA"}`), image(`{"url":"data:image/png;base64,A==="}`), image(`{"url":"data:image/png;base64,===="}`),
		image(`{"url":"data:image/png;base64,AA=A"}`), image(`{"url":"data:image/svg+xml;base64,AAAA"}`), image(`{"url":"data:image/png;charset=x;base64,AAAA"}`), image(`{"url":"data:image/png,AAAA"}`), image(`{"url":"data:;base64,AAAA"}`), image(`{}`),
	},
	"messages[0].content[0].image_url": {`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`},
	// Files.
	"messages[0].content[0].file.file_id": {file(`"file_id":"f"`), file(`"file_data":"data:application/pdf;base64,AAAA","file_id":"f"`)},
	"messages[0].content[0].file.file_data": {
		file(`"filename":"a.pdf"`), file(`"file_data":"AAAA"`), file(`"file_data":"data:application/pdf;base64,AAA"`), file(`"file_data":"data:application/pdf,AAAA"`),
		file(`"file_data":"data:image/png;base64,AAAA"`), file(`"file_data":"data:text/plain;base64,AAAA"`), file(`"file_data":""`), file(`"file_data":"https://example.com/a.pdf"`),
	},
	"messages[0].content[0].file.filename":    {file(`"file_data":"data:application/pdf;base64,AAAA","filename":""`)},
	"messages[0].content[0].file":             {`{"messages":[{"role":"user","content":[{"type":"file"}]}]}`, `{"messages":[{"role":"user","content":[{"type":"file","file":"f"}]}]}`},
	"messages[0].content[0].input_audio":      {`{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`},
	"messages[0].content[0].image_url.detail": {image(`{"url":"data:image/png;base64,AAAA","detail":"high"}`)},
	// Schemas.
	"response_format.type":                                              {answer(`"type":"grammar"`), answer(`"json_schema":null`), answer(`"type":"text","json_schema":{}`)},
	"response_format.json_schema":                                       {answer(`"type":"json_schema"`)},
	"response_format.json_schema.strict":                                {schema(`"name":"n","schema":{"type":"object"}`), schema(`"name":"n","strict":false,"schema":{}`)},
	"response_format.json_schema.name":                                  {schema(`"strict":true,"schema":{}`), schema(`"name":"a b","strict":true,"schema":{}`)},
	"response_format.json_schema.schema":                                {schema(`"name":"n","strict":true`)},
	"response_format.json_schema.schema.pattern":                        {strict(`"pattern":"a"`)},
	"response_format.json_schema.schema.additionalProperties":           {strict(`"additionalProperties":true`)},
	"response_format.json_schema.schema.properties.a.items.oneOf":       {strict(`"properties":{"a":{"items":{"oneOf":[]}}}`)},
	"response_format.json_schema.schema.properties.a":                   {strict(`"properties":{"a":{},"\u0061":{}}`)},
	"response_format.json_schema.schema.anyOf[1].type[0]":               {strict(`"anyOf":[{},{"type":[1]}]`)},
	"response_format.json_schema.schema.enum[1]":                        {strict(`"enum":["a",{}]`)},
	"response_format.json_schema.schema.format":                         {strict(`"format":"regex"`)},
	"response_format.json_schema.schema.required[0]":                    {strict(`"required":[{}]`)},
	"response_format.json_schema.schema.type":                           {strict(`"type":"object","type":"string"`)},
	"response_format.json_schema.schema" + strings.Repeat(".items", 32): {strict(strings.Repeat(`"items":{`, 40) + strings.Repeat("}", 40))},
	"response_format": {`{"messages":[` + hi + `],"response_format":"text"}`},
	"response_format.json_schema.schema.properties": {strict(`"properties":[]`)},
	"response_format.json_schema.schema.minItems":   {strict(`"minItems":"1"`)},
	// Tools.
	"tools":                                     {`{"messages":[` + hi + `],"tools":5}`, `{"messages":[` + hi + `],"tools":{"a":1}}`},
	"tools[0].function.parameters":              {tools(`{"type":"function","function":{"name":"f","parameters":[]}}`)},
	"tool_choice.function.name":                 {`{"messages":[` + hi + `],"tools":[` + f + `],"tool_choice":{"type":"function","function":{}}}`},
	"logit_bias":                                {`{"messages":[` + hi + `],"logit_bias":5}`},
	"tools[0].type":                             {tools(`{"function":{"name":"f"}}`)},
	"tools[0].function":                         {tools(`{"type":"function"}`)},
	"tools[0].function.name":                    {tools(`{"type":"function","function":{}}`), tools(`{"type":"function","function":{"name":"a.b"}}`), tools(`{"type":"function","function":{"name":"` + strings.Repeat("a", 65) + `"}}`)},
	"tools[0].function.parameters.type":         {tools(`{"type":"function","function":{"name":"f","parameters":{}}}`)},
	"tools[0].function.parameters.properties.a": {tools(`{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":1,"a":2}}}}`)},
	"tools[0].function.strict":                  {tools(`{"type":"function","function":{"name":"f","strict":1}}`)},
	"tool_choice":                               {`{"messages":[` + hi + `],"tools":[` + f + `],"tool_choice":"any"}`, `{"messages":[` + hi + `],"tool_choice":{"type":"function","function":{"name":"f"}}}`},
	"tool_choice.type":                          {`{"messages":[` + hi + `],"tools":[` + f + `],"tool_choice":{"type":"allowed_tools","function":{"name":"f"}}}`},
	"messages[0].tool_calls":                    {`{"messages":[{"role":"user","content":"a","tool_calls":[` + call + `]}]}`},
	"messages[0].tool_call_id":                  {`{"messages":[{"role":"tool","content":"a","tool_call_id":"1"}]}`, `{"messages":[{"role":"tool","content":"a"}]}`},
	"messages[1].content":                       {calls(``), strings.Replace(calls(call), `"tool_calls"`, `"content":[],"tool_calls"`, 1), strings.Replace(calls(``), `"tool_calls"`, `"content":"","tool_calls"`, 1)},
	"messages[1].annotations":                   {`{"messages":[` + hi + `,{"role":"assistant","content":"a","annotations":[{"type":"url_citation"}]},` + hi + `]}`, `{"messages":[` + hi + `,{"role":"assistant","content":"a","annotations":{}},` + hi + `]}`},
	"messages[1].tool_calls":                    {`{"messages":[` + hi + `,{"role":"assistant","content":"a","tool_calls":{}},` + hi + `]}`},
	"messages[1].tool_calls[1].id":              {calls(call + "," + call)},
	"messages[1].tool_calls[0].id":              {calls(`{"type":"function","function":{"name":"f","arguments":"{}"}}`), calls(`{"id":"a b","type":"function","function":{"name":"f","arguments":"{}"}}`)},
	"messages[1].tool_calls[0].type":            {calls(`{"id":"1","function":{"name":"f","arguments":"{}"}}`)},
	"messages[1].tool_calls[0].function.name":   {calls(`{"id":"1","type":"function","function":{"arguments":"{}"}}`)},
	"messages[1].tool_calls[0].function.arguments": {
		calls(`{"id":"1","type":"function","function":{"name":"f"}}`), calls(`{"id":"1","type":"function","function":{"name":"f","arguments":{}}}`), calls(`{"id":"1","type":"function","function":{"name":"f","arguments":""}}`),
		calls(`{"id":"1","type":"function","function":{"name":"f","arguments":"[]"}}`), calls(`{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":}"}}`), calls(`{"id":"1","type":"function","function":{"name":"f","arguments":"{\"\ud800\":1}"}}`),
	},
	"messages[1].tool_calls[0].function.arguments.a[1][0].b": {calls(`{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":[{},[{\"b\":1,\"b\":2}]]}"}}`)},
	"messages[1].tool_calls[0].function.arguments.a":         {calls(`{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}}`)},
	"messages[1]":                 {calls(call)},
	"messages[2].role":            {calls(call, hi)},
	"messages[3].tool_call_id":    {calls(call, result, result)},
	"messages[2].content":         {calls(call, `{"role":"tool","tool_call_id":"1"}`), calls(call, `{"role":"tool","tool_call_id":"1","content":""}`), calls(call, `{"role":"tool","tool_call_id":"1","content":[]}`)},
	"messages[2].content[1].type": {calls(call, `{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`)},
	"messages[2].content[0].text": {calls(call, `{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":""}]}`)},
}

const (
	f      = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`
	call   = `{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}`
	result = `{"role":"tool","tool_call_id":"1","content":"r"}`
)

func image(url string) string {
	return `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":` + url + `}]}]}`
}

func file(members string) string {
	return `{"messages":[{"role":"user","content":[{"type":"file","file":{` + members + `}}]}]}`
}

func answer(format string) string {
	return `{"messages":[` + hi + `],"response_format":{` + format + `}}`
}
func schema(s string) string { return answer(`"type":"json_schema","json_schema":{` + s + `}`) }
func strict(s string) string { return schema(`"name":"n","strict":true,"schema":{` + s + `}`) }
func tools(t string) string  { return `{"messages":[` + hi + `],"tools":[` + t + `]}` }
func calls(calls string, after ...string) string {
	return `{"messages":[` + strings.Join(append([]string{hi, `{"role":"assistant","tool_calls":[` + calls + `]}`}, after...), ",") + `]}`
}

// Every dialect refuses these bodies, and names the field.
func TestRefusedByName(t *testing.T) {
	for field, bodies := range refused {
		for _, body := range bodies {
			for _, d := range dialects {
				_, err := d.fromChat(provider.Request{Model: "m", Body: []byte(body)}, provider.Defaults{MaxTokens: 7})
				why := new(provider.Untranslatable)
				if !errors.As(err, &why) || why.Field != field {
					t.Errorf("%s: %s: got %v, want %s", d.name, body, err, field)
				}
			}
		}
	}
}

// What one dialect refuses and others need not.
func TestRefusedByOne(t *testing.T) {
	for _, row := range []struct{ dialect, body, field string }{
		{"anthropic", `{"messages":[{"role":"user","content":" \n"}]}`, "messages[0].content"},
		{"converse", `{"messages":[{"role":"user","content":[{"type":"text","text":"\t"}]}]}`, "messages[0].content[0].text"},
		{"gemini", image(`{"url":"data:image/gif;base64,AAAA"}`), "messages[0].content[0].image_url.url"},
		{"gemini", image(`{"url":"https://example.com/a.png"}`), "messages[0].content[0].image_url.url"},
		{"converse", image(`{"url":"https://example.com/a.png"}`), "messages[0].content[0].image_url.url"},
		{"converse", strings.Replace(file(`"file_data":"data:application/pdf;base64,AAAA"`), "]}]", `,{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]`, 1), "messages[0].content[0].file"},
		{"converse", `{"messages":[` + hi + `,{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]}`, "messages[3].content[0].file"},
		{"gemini", strict(`"$ref":"#"`), "response_format.json_schema.schema.$ref"},
		{"gemini", strict(`"enum":[true]`), "response_format.json_schema.schema.enum[0]"},
		{"gemini", schema(`"name":"n","strict":true,"description":"d","schema":{}`), "response_format.json_schema.description"},
		{"gemini", calls(call, `{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`), "messages[2].content"},
		{"gemini", `{"messages":[` + hi + `],"tools":[` + f + `],"parallel_tool_calls":false}`, "parallel_tool_calls"},
		{"gemini", tools(f + `,{"type":"function","function":{"name":"g","strict":true,"parameters":{"type":"object"}}}`), "tools[1].function.strict"},
		{"gemini", tools(`{"type":"function","function":{"name":"g","strict":true,"parameters":{"type":"object","$ref":"#"}}}`), "tools[0].function.parameters.$ref"},
		{"anthropic", schema(`"name":"n","strict":true,"description":"d","schema":{}`), "response_format.json_schema.description"},
		{"anthropic", strict(`"minItems":2`), "response_format.json_schema.schema.minItems"},
		{"anthropic", strict(`"maximum":2`), "response_format.json_schema.schema.maximum"},
		{"anthropic", tools(`{"type":"function","function":{"name":"f"}}`), "tools[0].function.parameters"},
		{"anthropic", `{"messages":[` + hi + `],"stop":["a"," "]}`, "stop[1]"},
		{"anthropic", calls(call, `{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},{"type":"text","text":" "}]}`), "messages[2].content[1].text"},
		{"converse", `{"messages":[` + hi + `],"tools":[` + f + `],"tool_choice":"none"}`, "tool_choice"},
		{"converse", `{"messages":[` + hi + `],"tools":[` + f + `],"parallel_tool_calls":false}`, "parallel_tool_calls"},
		{"anthropic", tools(f + `,{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","oneOf":[]}}}`), "tools[1].function.parameters.oneOf"},
		{"converse", strict("\"title\":\"\xff\""), "response_format.json_schema.schema"},
	} {
		for _, d := range dialects {
			_, err := d.fromChat(provider.Request{Model: "m", Body: []byte(row.body)}, provider.Defaults{MaxTokens: 7})
			if why := new(provider.Untranslatable); d.name == row.dialect && (!errors.As(err, &why) || why.Field != row.field) {
				t.Errorf("%s: %s: got %v, want %s", d.name, row.body, err, row.field)
			}
		}
	}
}

// Anthropic demands a bound and a model; the others do not.
func TestWhatOneDemands(t *testing.T) {
	bare := []byte(`{"messages":[` + hi + `]}`)
	for _, row := range []struct{ model, want string }{{"m", "max_completion_tokens"}, {"", "model"}} {
		_, err := dialects[0].fromChat(provider.Request{Model: row.model, Body: bare}, provider.Defaults{})
		if why := new(provider.Untranslatable); !errors.As(err, &why) || why.Field != row.want {
			t.Errorf("got %v, want %s", err, row.want)
		}
	}
	for _, fromChat := range []func(provider.Request, provider.Defaults) ([]byte, error){gemini.FromChat, converse.FromChat} {
		if _, err := fromChat(provider.Request{Body: bare}, provider.Defaults{}); err != nil {
			t.Error(err)
		}
	}
}

// A refusal says in whose message a field may stand.
func TestRefusalsSayWhereAFieldBelongs(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"a","tool_call_id":"1"}]}`:          "messages[0].tool_call_id: can only be in a tool's message",
		`{"messages":[{"role":"user","content":"a","tool_calls":[` + call + `]}]}`: "messages[0].tool_calls: can only be in an assistant's message",
	} {
		if _, err := converse.FromChat(provider.Request{Body: []byte(body)}, provider.Defaults{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// A body of any size is read in time that grows as its length: these would take minutes if
// anything in it were looked at once for each of the others.
func TestLongBodies(t *testing.T) {
	const n = 100_000
	many := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	var names, calling, results strings.Builder
	for i := range n {
		fmt.Fprintf(&names, `,"p%d":{}`, i)
		fmt.Fprintf(&calling, `,{"id":"%d","type":"function","function":{"name":"f","arguments":"{}"}}`, i)
		fmt.Fprintf(&results, `,{"role":"tool","tool_call_id":"%d","content":"r"}`, i)
	}
	for name, body := range map[string]string{
		"messages": `{"messages":[` + many(hi) + `]}`,
		"parts":    `{"messages":[{"role":"user","content":[` + many(`{"type":"text","text":"a"}`) + `]}]}`,
		"stops":    `{"messages":[` + hi + `],"stop":[` + many(`"a"`) + `]}`,
		"tools":    tools(many(f)),
		"slashes":  `{"messages":[{"role":"user","content":"` + strings.Repeat(`\\`, 10*n) + `"}]}`,
		"calls":    calls(calling.String()[1:], results.String()[1:]),
		"names":    strict(`"properties":{` + names.String()[1:] + `}`),
		"inputs":   tools(`{"type":"function","function":{"name":"f","parameters":{"type":"object"` + names.String() + `}}}`),
		"enum":     strict(`"enum":[` + many(`"a"`) + `]`),
	} {
		if _, err := converse.FromChat(provider.Request{Body: []byte(body)}, provider.Defaults{}); err != nil {
			t.Errorf("%s: %.200s", name, err.Error())
		}
	}
	for name, body := range map[string]string{
		"depth":        `{"messages":` + strings.Repeat("[", 1<<20),
		"nested":       `{"messages":[` + hi + `],"tools":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
		"deep schema":  strict(strings.Repeat(`"items":{`, 9000) + strings.Repeat("}", 9000)),
		"deep input":   tools(`{"type":"function","function":{"name":"f","parameters":{"type":"object","a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}}`),
		"unknown name": `{"messages":[` + hi + `],"` + strings.Repeat("x", 1<<20) + `":1}`,
	} {
		for _, d := range dialects {
			_, err := d.fromChat(provider.Request{Model: "m", Body: []byte(body)}, provider.Defaults{MaxTokens: 7})
			if err == nil || len(err.Error()) > 1024 {
				t.Errorf("%s: %s: %.2000v", d.name, name, err)
			}
		}
	}
}
