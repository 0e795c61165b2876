package foreign

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// An allowance is one thing that Portkey adds, drops or says otherwise. It changes what both
// sent so that they agree in this, and reports whether there was anything to change.
type allowance struct {
	what  string
	apply func(ours, theirs map[string]any) bool
}

var (
	textAsString = allowance{"a text alone stands as a string, where we send a list of one part: it means the same", func(_, theirs map[string]any) bool {
		found := false
		for _, m := range list(theirs["messages"]) {
			if said, ok := fields(m)["content"].(string); ok {
				fields(m)["content"] = []any{map[string]any{"type": "text", "text": said}}
				found = true
			}
		}
		return found
	}}
	// Two losses: what stands there is no base64, and Anthropic refuses it.
	wholeURL = allowance{"the data URL of a file is sent where its data must stand, and its name is not", func(ours, theirs map[string]any) bool {
		found, all := false, list(ours["messages"])
		for i, m := range list(theirs["messages"]) {
			for k, part := range list(fields(m)["content"]) {
				source := fields(fields(part)["source"])
				if data, ok := source["data"].(string); ok && fields(part)["type"] == "document" {
					source["data"], found = strings.TrimPrefix(data, "data:application/pdf;base64,"), true
					delete(fields(list(fields(all[i])["content"])[k]), "title")
				}
			}
		}
		return found
	}}
	anyName = allowance{"a file has a name of chance, and its data URL is sent where its data must stand", func(ours, theirs map[string]any) bool {
		found, all := false, list(ours["messages"])
		for i, m := range list(theirs["messages"]) {
			for k, part := range list(fields(m)["content"]) {
				if document := fields(fields(part)["document"]); document != nil {
					source := fields(document["source"])
					data, _ := source["bytes"].(string)
					source["bytes"], found = strings.TrimPrefix(data, "data:application/pdf;base64,"), true
					document["name"] = fields(fields(list(fields(all[i])["content"])[k])["document"])["name"]
				}
			}
		}
		return found
	}}
	noSystem = allowance{"an empty system is sent where there is none", func(_, theirs map[string]any) bool {
		return drop(theirs, "system", []any{})
	}}
	streamFalse = allowance{"stream false is sent, which says nothing", func(_, theirs map[string]any) bool {
		return drop(theirs, "stream", false)
	}}
	stopAlone = allowance{"a stop that is a string is not put into the list that must stand there", func(_, theirs map[string]any) bool {
		return intoList(theirs, "stop_sequences")
	}}
	stopAloneInConfig = allowance{stopAlone.what, func(_, theirs map[string]any) bool {
		return intoList(fields(theirs["inferenceConfig"]), "stopSequences") || intoList(fields(theirs["generationConfig"]), "stopSequences")
	}}
	noStop = allowance{"stops that are none are sent as such", func(_, theirs map[string]any) bool {
		return drop(theirs, "stop_sequences", []any{}) || drop(fields(theirs["inferenceConfig"]), "stopSequences", []any{}) ||
			drop(fields(theirs["generationConfig"]), "stopSequences", []any{})
	}}
	ones = allowance{"a temperature and a top_p of 1 are sent, and new models of Claude refuse both together", func(_, theirs map[string]any) bool {
		temperature, topP := drop(theirs, "temperature", 1.0), drop(theirs, "top_p", 1.0)
		return temperature || topP
	}}
	emptyText = allowance{"an empty text is sent, which Anthropic and Bedrock refuse", func(_, theirs map[string]any) bool {
		system := dropEmpty(theirs, "system", "text")
		instruction := fields(theirs["systemInstruction"])
		if dropEmpty(instruction, "parts", "text") {
			system = true
			if len(list(instruction["parts"])) == 0 {
				delete(theirs, "systemInstruction")
			}
		}
		for _, m := range list(theirs["messages"]) {
			system = dropEmpty(fields(m), "content", "text") || system
		}
		return system
	}}
	textAlone = allowance{"that text alone is wanted is sent, which says nothing", func(_, theirs map[string]any) bool {
		return drop(fields(theirs["generationConfig"]), "responseModalities", []any{"TEXT"})
	}}
	nobody = allowance{"of a user that is null there are metadata with a user that is null", func(_, theirs map[string]any) bool {
		return drop(theirs, "metadata", map[string]any{"user_id": nil})
	}}
	noTools = allowance{"tools that are none are sent as such", func(_, theirs map[string]any) bool {
		return drop(theirs, "tools", []any{}) || drop(theirs, "toolConfig", nil)
	}}
	modelInBody = allowance{"the model stands in the body, too", func(_, theirs map[string]any) bool {
		return drop(theirs, "model", chatModel)
	}}
	systemRole = allowance{"the system has a role, which says nothing", func(_, theirs map[string]any) bool {
		return drop(fields(theirs["systemInstruction"]), "role", "system")
	}}
	// A loss: the rest of what the system says is gone without a word. What is there must be
	// the beginning of ours.
	oneSystem = allowance{"of what the system says only the first text is sent", func(ours, theirs map[string]any) bool {
		all, first := list(fields(ours["systemInstruction"])["parts"]), list(fields(theirs["systemInstruction"])["parts"])
		if len(first) == 0 || len(first) >= len(all) {
			return false
		}
		fields(ours["systemInstruction"])["parts"] = all[:1]
		return true
	}}
	// We leave to Gemini what it takes: turns of one role that follow each other.
	oneTurn = allowance{"neighbours of one role are one turn", func(ours, _ map[string]any) bool {
		return join(ours, "contents", "parts")
	}}
	// A loss, too: next to tool_calls that are none.
	lostWords = allowance{"words of the model next to calls that are none are not sent", func(ours, theirs map[string]any) bool {
		found, all := false, list(ours["contents"])
		for i, turn := range list(theirs["contents"]) {
			if i < len(all) && fields(turn)["role"] == "model" && len(list(fields(turn)["parts"])) == 0 {
				fields(turn)["parts"], found = fields(all[i])["parts"], true
			}
		}
		return found
	}}
	turnsOfResults = allowance{"what several tools gave back is a turn each", func(ours, theirs map[string]any) bool {
		join(ours, "messages", "content")
		return join(theirs, "messages", "content")
	}}
	choiceAuto = allowance{"a tool_choice that is auto is sent, which says nothing", func(_, theirs map[string]any) bool {
		return drop(theirs, "tool_choice", map[string]any{"type": "auto"}) ||
			drop(fields(theirs["toolConfig"]), "toolChoice", map[string]any{"auto": map[string]any{}})
	}}
	noDefs = allowance{"a tool's schema without definitions gets some, which are none", func(_, theirs map[string]any) bool {
		found := false
		for _, tool := range list(theirs["tools"]) {
			found = drop(fields(fields(tool)["input_schema"]), "$defs", map[string]any{}) || found
		}
		return found
	}}
	// Two losses more: a tool's calls are not held to its schema, or may have fields more.
	notStrict = allowance{"that a tool is strict is not sent", func(ours, _ map[string]any) bool {
		found := false
		for _, tool := range list(ours["tools"]) {
			found = drop(fields(tool), "strict", true) || found
		}
		for _, tool := range list(fields(ours["toolConfig"])["tools"]) {
			found = drop(fields(fields(tool)["toolSpec"]), "strict", true) || found
		}
		return found
	}}
	openSchema = allowance{"additionalProperties at the top of a tool's schema are not sent", func(ours, _ map[string]any) bool {
		found := false
		for _, tool := range list(ours["tools"]) {
			found = drop(fields(fields(tool)["input_schema"]), "additionalProperties", false) || found
		}
		return found
	}}
)

// drop takes out a member that has just that value.
func drop(o map[string]any, name string, value any) bool {
	if v, ok := o[name]; !ok || !reflect.DeepEqual(v, value) {
		return false
	}
	delete(o, name)
	return true
}

// dropEmpty takes out the parts of a list whose member is an empty string, and a list that is
// empty then.
func dropEmpty(o map[string]any, name, member string) bool {
	all := list(o[name])
	rest := slices.DeleteFunc(slices.Clone(all), func(part any) bool { return fields(part)[member] == "" })
	if len(rest) == len(all) {
		return false
	}
	if o[name] = rest; len(rest) == 0 {
		delete(o, name)
	}
	return true
}

// join makes one turn of neighbours of one role.
func join(o map[string]any, name, parts string) bool {
	var turns []any
	for _, turn := range list(o[name]) {
		if n := len(turns); n > 0 && fields(turns[n-1])["role"] == fields(turn)["role"] {
			before := fields(turns[n-1])
			before[parts] = append(list(before[parts]), list(fields(turn)[parts])...)
		} else {
			turns = append(turns, turn)
		}
	}
	joined := len(turns) < len(list(o[name]))
	o[name] = turns
	return joined
}

func intoList(o map[string]any, name string) bool {
	alone, ok := o[name].(string)
	if ok {
		o[name] = []any{alone}
	}
	return ok
}

// fields and list are nil of what is none.
func fields(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// difference is the first place where two values differ, with both; "" if there is none.
func difference(at string, ours, theirs any) string {
	a, b := fields(ours), fields(theirs)
	if a != nil && b != nil {
		for name := range a {
			if d := difference(at+"."+name, a[name], b[name]); d != "" {
				return d
			}
		}
		for name := range b {
			if _, ok := a[name]; !ok {
				return fmt.Sprintf("%s.%s: theirs has %v", at, name, b[name])
			}
		}
		return ""
	}
	x, y := list(ours), list(theirs)
	if x != nil && y != nil && len(x) == len(y) {
		for i := range x {
			if d := difference(fmt.Sprintf("%s[%d]", at, i), x[i], y[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if reflect.DeepEqual(ours, theirs) {
		return ""
	}
	return fmt.Sprintf("%s: ours is %v, theirs %v", at, ours, theirs)
}
