package chat

import (
	"bytes"
	"unicode/utf8"

	"github.com/headrace/headrace/provider/rawjson"
)

var (
	toolFields      = []string{"type", "function"}
	functionFields  = []string{"name", "description", "parameters", "strict"}
	callFields      = []string{"id", "type", "function"}
	calledFields    = []string{"name", "arguments"}
	choiceFunctions = []string{"name"}
)

// tool reads one of the tools.
func (r *reader) tool(_ int, value []byte) *refusal {
	function, refused := functionOf(value, toolFields, nil)
	if refused != nil {
		return refused
	}
	var t Tool
	refused = eachMember(function, functionFields, func(name string, value []byte) *refusal {
		switch name {
		case "name":
			return keepName(&t.Name, value)
		case "description":
			return keepText(&t.Description, value)
		case "parameters":
			t.Parameters = value
			return checkParameters(value)
		}
		t.Strict = string(value) == "true"
		if t.Strict {
			return nil
		}
		return requireValue(value, "false")
	})
	if refused == nil {
		refused = requirePresent(t.Name).in("name")
	}
	r.Tools = append(r.Tools, t)
	return refused.in("function")
}

// functionOf reads what a tool, a call and a choice have in common: a type, and the function
// under it. It passes other members to take.
func functionOf(value []byte, known []string, take func(name string, value []byte) *refusal) (function []byte, refused *refusal) {
	var kind []byte
	refused = eachMember(value, known, func(name string, value []byte) *refusal {
		switch name {
		case "type":
			return keepString(&kind, value)
		case "function":
			function = value
			return nil
		}
		return take(name, value)
	})
	switch {
	case refused != nil:
		return nil, refused
	case kind == nil:
		return nil, refuse("is missing").in("type")
	case stringOf(kind) != "function":
		return nil, refuse("has no counterpart").in("type")
	}
	return function, requirePresent(function).in("function")
}

// checkParameters refuses a schema of a function that is not the schema of an object.
func checkParameters(value []byte) *refusal {
	if value[0] != '{' {
		return refuse("is not an object")
	}
	if stringOf(rawjson.Lookup(value, "type")) != "object" {
		return refuse("is not object").in("type")
	}
	return checkUniqueNames(value, maxNested)
}

// maxNested bounds the nesting of a tool's schema or input.
const maxNested = 64

// checkUniqueNames refuses a value in which a name stands twice in an object. Schemas and inputs
// are carried over whole, and their readers differ in which of the two they take.
func checkUniqueNames(value []byte, depth int) *refusal {
	if value[0] != '{' && value[0] != '[' {
		return nil
	}
	if depth == 0 {
		return refuse("nests too deep")
	}
	if value[0] == '[' {
		i := 0
		for w := rawjson.WalkIn(value); w.Next(); i++ {
			if refused := checkUniqueNames(w.Skip(), depth-1); refused != nil {
				return refused.at(i)
			}
		}
		return nil
	}
	return eachUnique(value, func(value []byte) *refusal { return checkUniqueNames(value, depth-1) })
}

// checkToolChoice checks the rules for using tools, once it is known whether there are any.
func (r *reader) checkToolChoice() *refusal {
	if r.parallel != nil {
		r.OneCall = string(r.parallel) == "false" && r.Tools != nil
		if !r.OneCall {
			if refused := requireValue(r.parallel, "true"); refused != nil {
				return refused.in("parallel_tool_calls")
			}
		}
	}
	if r.choice == nil {
		return nil
	}
	return r.readChoice(r.choice).in("tool_choice")
}

// readChoice reads tool_choice. Without tools, "none" is the default and says nothing, and any other
// choice is refused. With tools, "auto" is the default.
func (r *reader) readChoice(value []byte) *refusal {
	if value[0] != '"' {
		return r.readNamedChoice(value)
	}
	switch choice := stringOf(value); {
	case choice == "none" && r.Tools == nil, choice == "auto" && r.Tools != nil:
		return nil
	case r.Tools == nil:
		return refuse("is set without tools")
	case choice == "none":
		r.Choice = ChoiceNone
	case choice == "required":
		r.Choice = ChoiceAny
	default:
		return refuse("has no counterpart")
	}
	return nil
}

// readNamedChoice reads a choice that names the function to call. It does not look for that name among
// the tools.
func (r *reader) readNamedChoice(value []byte) *refusal {
	function, refused := functionOf(value, toolFields, nil)
	if refused != nil {
		return refused
	}
	refused = eachMember(function, choiceFunctions, func(_ string, value []byte) *refusal {
		return keepName(&r.ChoiceName, value)
	})
	if refused == nil {
		refused = requirePresent(r.ChoiceName).in("name")
	}
	if refused == nil && r.Tools == nil {
		return refuse("is set without tools")
	}
	r.Choice = ChoiceNamed
	return refused.in("function")
}

// addCalls adds a message in which the model calls tools, perhaps after a text. The results of the
// calls are then pending.
func (r *reader) addCalls(i int, m *message) *refusal {
	turn := Turn{Role: Assistant}
	if m.content != nil {
		var refused *refusal
		if turn.Parts, refused = content(i, m.content, false); refused != nil {
			return refused
		}
	}
	r.pending = map[string][]byte{}
	refused := eachElement(m.calls, func(index int, value []byte) *refusal {
		call := Part{Kind: Call, Tool: new(ToolUse), message: i, index: index}
		if refused := call.readCall(value); refused != nil {
			return refused
		}
		id := string(call.Tool.ID)
		if _, twice := r.pending[id]; twice {
			return refuse("stands twice").in("id")
		}
		r.pending[id] = call.Tool.Name
		turn.Parts = append(turn.Parts, call)
		return nil
	})
	r.Turns = append(r.Turns, turn)
	return refused.in("tool_calls")
}

// readCall reads a call of a tool in a message of the model's. It demands the id, the name and the
// arguments.
func (p *Part) readCall(value []byte) *refusal {
	function, refused := functionOf(value, callFields, func(_ string, value []byte) *refusal {
		return keepName(&p.Tool.ID, value)
	})
	if refused != nil {
		return refused
	}
	if p.Tool.ID == nil {
		return refuse("is missing").in("id")
	}
	refused = eachMember(function, calledFields, func(name string, value []byte) *refusal {
		if name == "name" {
			return keepName(&p.Tool.Name, value)
		}
		return p.readArguments(value)
	})
	if refused == nil {
		refused = requirePresent(p.Tool.Name).in("name")
	}
	if refused == nil {
		refused = requirePresent(p.Text).in("arguments")
	}
	return refused.in("function")
}

// readArguments reads the arguments of a call: a string that holds a JSON object.
func (p *Part) readArguments(value []byte) *refusal {
	if refused := keepText(new([]byte), value); refused != nil {
		return refused
	}
	inner := rawjson.Trim(rawjson.Unquote(value))
	if bytes.ContainsRune(inner, utf8.RuneError) { // half a surrogate pair
		return refuse("has an invalid character")
	}
	if !rawjson.Valid(inner) || inner[0] != '{' {
		return refuse("is not a JSON object")
	}
	p.Text = inner
	return checkUniqueNames(inner, maxNested)
}

// addResult adds the result of a tool. The results for the calls of one turn are one turn.
func (r *reader) addResult(i int, m *message) *refusal {
	p := Part{Kind: Result, Tool: new(ToolUse), message: i, index: -1}
	if m.callID == nil {
		return refuse("is missing").in("tool_call_id")
	}
	if refused := keepName(&p.Tool.ID, m.callID); refused != nil {
		return refused.in("tool_call_id")
	}
	name, called := r.pending[string(p.Tool.ID)]
	if !called {
		return refuse("belongs to no call in the turn before").in("tool_call_id")
	}
	p.Tool.Name = name
	delete(r.pending, string(p.Tool.ID))
	parts, refused := content(i, m.content, false)
	if refused != nil {
		return refused
	}
	if p.Text = parts[0].Text; parts[0].index >= 0 {
		p.Text, p.Tool.Parts = nil, parts
	}
	if last := &r.Turns[len(r.Turns)-1]; last.Parts[0].Kind == Result {
		last.Parts = append(last.Parts, p)
	} else {
		r.Turns = append(r.Turns, Turn{Role: User, Parts: []Part{p}})
	}
	return nil
}
