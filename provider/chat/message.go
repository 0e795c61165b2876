package chat

// A message is one of OpenAI's messages, not checked yet.
type message struct{ role, content, calls, callID []byte }

var messageFields = []string{"role", "content", "tool_calls", "tool_call_id", "name", "refusal", "audio", "function_call", "annotations"}

// message takes the i-th message.
func (r *reader) message(i int, value []byte) *refusal {
	var m message
	refused := object(value, messageFields, func(name string, value []byte) *refusal {
		switch name {
		case "role":
			return str(&m.role, value)
		case "content":
			m.content = value
		case "tool_calls":
			m.calls = value
		case "tool_call_id":
			m.callID = value
		default:
			if name == "annotations" && noList(value) {
				return nil
			}
			return refuse("has no counterpart")
		}
		return nil
	})
	if refused != nil {
		return refused
	}
	m.leaveOutEmpty()
	return r.said(i, &m)
}

// leaveOutEmpty leaves out empty parts: an empty list of calls, and an empty text before calls.
func (m *message) leaveOutEmpty() {
	if m.calls != nil && noList(m.calls) {
		m.calls = nil
	}
	if m.calls != nil && string(m.content) == `""` {
		m.content = nil
	}
}

// said puts a message into its place.
func (r *reader) said(i int, m *message) *refusal {
	role := word(m.role)
	if m.callID != nil && role != "tool" {
		return refuse("cannot be in a tool's message").in("tool_call_id")
	}
	if m.calls != nil && role != "assistant" {
		return refuse("cannot be in a model's message").in("tool_calls")
	}
	if len(r.pending) > 0 && role != "tool" {
		return refuse("comes before the results of all calls of tools").in("role")
	}
	switch role {
	case "system", "developer":
		return r.system(i, m)
	case "user":
		return r.turn(i, User, m)
	case "assistant":
		return r.assistant(i, m)
	case "tool":
		return r.result(i, m)
	}
	return refuse("has no counterpart").in("role")
}

func (r *reader) system(i int, m *message) *refusal {
	if len(r.Turns) > 0 {
		return refuse("is " + word(m.role) + " after the conversation has begun").in("role")
	}
	if string(m.content) == `""` {
		return nil
	}
	parts, refused := content(i, m.content, false)
	r.System = append(r.System, parts...)
	return refused
}

func (r *reader) turn(i int, role Role, m *message) *refusal {
	parts, refused := content(i, m.content, role == User)
	r.Turns = append(r.Turns, Turn{Role: role, Parts: parts})
	return refused
}

func (r *reader) assistant(i int, m *message) *refusal {
	if len(r.Turns) == 0 {
		return refuse("is assistant before a user has said anything").in("role")
	}
	if m.calls == nil {
		return r.turn(i, Assistant, m)
	}
	return r.calling(i, m)
}

// lastTurn refuses a conversation that ends with the model's words: other providers continue
// them, OpenAI begins a new answer.
func (r *reader) lastTurn() *refusal {
	last := r.Turns[len(r.Turns)-1]
	why := refuse("is assistant, with nothing after it").in("role")
	switch {
	case len(r.pending) > 0:
		why = refuse("is before the results of all calls of tools")
	case last.Role == User:
		return nil
	}
	return why.at(last.Parts[0].message).in("messages")
}

// content reads the content of a message: a string, or a list of parts. Only a user's message may
// have images and files.
func content(i int, value []byte, user bool) ([]Part, *refusal) {
	if value == nil {
		return nil, refuse("is missing").in("content")
	}
	if value[0] == '"' {
		parts := []Part{{message: i, index: -1}}
		return parts, text(&parts[0].Text, value).in("content")
	}
	var parts []Part
	refused := list(value, func(at int, value []byte) *refusal {
		parts = append(parts, Part{message: i, index: at})
		return part(&parts[at], value, user)
	})
	return parts, refused.in("content")
}

var partFields = []string{"type", "text", "image_url", "refusal", "input_audio", "file"}

// part reads one part of a list: its type, and the member that has the name of the type.
func part(p *Part, value []byte, user bool) *refusal {
	var kind, member []byte
	members, name := 0, ""
	refused := object(value, partFields, func(field string, value []byte) *refusal {
		switch field {
		case "type":
			return str(&kind, value)
		case "text", "image_url", "file":
			members, name, member = members+1, field, value
			return nil
		}
		return refuse("has no counterpart")
	})
	if refused != nil {
		return refused
	}
	which := word(kind)
	switch {
	case kind == nil:
		return refuse("is missing").in("type")
	case members > 1, which != "text" && !(user && (which == "image_url" || which == "file")), members == 1 && name != which:
		return refuse("has no counterpart here").in("type")
	case members == 0:
		return refuse("is missing").in(which)
	case which == "image_url":
		return p.image(member).in(which)
	case which == "file":
		return p.file(member).in(which)
	}
	return text(&p.Text, member).in(which)
}

func present(value []byte) *refusal {
	if value == nil {
		return refuse("is missing")
	}
	return nil
}
