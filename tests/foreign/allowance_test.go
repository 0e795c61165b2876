package foreign

import "reflect"

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
		var turns []any
		for _, turn := range list(ours["contents"]) {
			if n := len(turns); n > 0 && fields(turns[n-1])["role"] == fields(turn)["role"] {
				before := fields(turns[n-1])
				before["parts"] = append(list(before["parts"]), list(fields(turn)["parts"])...)
			} else {
				turns = append(turns, turn)
			}
		}
		merged := len(turns) < len(list(ours["contents"]))
		ours["contents"] = turns
		return merged
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
