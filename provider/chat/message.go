package chat

import (
	"bytes"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

// A message is one of OpenAI's messages, not checked yet.
type message struct{ role, content, calls, callID []byte }

var messageFields = []string{"role", "content", "tool_calls", "tool_call_id", "name", "refusal", "audio", "function_call", "annotations"}

// message reads the i-th message and adds it to the request.
func (r *reader) message(i int, value []byte) *refusal {
	var m message
	refused := eachMember(value, messageFields, func(name string, value []byte) *refusal {
		switch name {
		case "role":
			return keepString(&m.role, value)
		case "content":
			m.content = value
		case "tool_calls":
			m.calls = value
		case "tool_call_id":
			m.callID = value
		default:
			if name == "annotations" && isEmptyList(value) {
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
	return r.addMessage(i, &m)
}

// leaveOutEmpty leaves out empty parts: an empty list of calls, and an empty text before calls.
func (m *message) leaveOutEmpty() {
	if m.calls != nil && isEmptyList(m.calls) {
		m.calls = nil
	}
	if m.calls != nil && string(m.content) == `""` {
		m.content = nil
	}
}

// addMessage adds a message to the request by its role. It refuses members that the role does not
// have, and any message but a tool's while results of tools are missing.
func (r *reader) addMessage(i int, m *message) *refusal {
	role := stringOf(m.role)
	if m.callID != nil && role != "tool" {
		return refuse("can only be in a tool's message").in("tool_call_id")
	}
	if m.calls != nil && role != "assistant" {
		return refuse("can only be in an assistant's message").in("tool_calls")
	}
	if len(r.pending) > 0 && role != "tool" {
		return refuse("comes before the results of all calls of tools").in("role")
	}
	switch role {
	case "system", "developer":
		return r.addSystem(i, m)
	case "user":
		return r.addTurn(i, User, m)
	case "assistant":
		return r.addAssistant(i, m)
	case "tool":
		return r.addResult(i, m)
	}
	return refuse("has no counterpart").in("role")
}

// addSystem adds a message of the system. It refuses one after the first turn.
func (r *reader) addSystem(i int, m *message) *refusal {
	if len(r.Turns) > 0 {
		return refuse("is " + stringOf(m.role) + " after the conversation has begun").in("role")
	}
	if string(m.content) == `""` {
		return nil
	}
	parts, refused := content(i, m.content, false)
	r.System = append(r.System, parts...)
	return refused
}

// addTurn adds a message as a turn of its own.
func (r *reader) addTurn(i int, role Role, m *message) *refusal {
	parts, refused := content(i, m.content, role == User)
	r.Turns = append(r.Turns, Turn{Role: role, Parts: parts})
	return refused
}

// addAssistant adds a message of the model, with its calls of tools if it has any.
func (r *reader) addAssistant(i int, m *message) *refusal {
	if len(r.Turns) == 0 {
		return refuse("is assistant before a user has said anything").in("role")
	}
	if m.calls == nil {
		return r.addTurn(i, Assistant, m)
	}
	return r.addCalls(i, m)
}

// checkLastTurn refuses a conversation that ends with the model's words. Other providers continue
// such words, and OpenAI begins a new answer.
func (r *reader) checkLastTurn() *refusal {
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
func content(message int, value []byte, fromUser bool) ([]Part, *refusal) {
	if value == nil {
		return nil, refuse("is missing").in("content")
	}
	if value[0] == '"' {
		parts := []Part{{message: message, index: -1}}
		return parts, keepText(&parts[0].Text, value).in("content")
	}
	var parts []Part
	refused := eachElement(value, func(index int, value []byte) *refusal {
		parts = append(parts, Part{message: message, index: index})
		return parts[index].read(value, fromUser)
	})
	return parts, refused.in("content")
}

var partFields = []string{"type", "text", "image_url", "refusal", "input_audio", "file"}

// read reads one part of a list: its type, and the one other member, which has the type's name. Only a
// user's message may have images and files.
func (p *Part) read(value []byte, fromUser bool) *refusal {
	var kind, member []byte
	name, members := "", 0 // of member, the latest of so many
	refused := eachMember(value, partFields, func(field string, value []byte) *refusal {
		switch field {
		case "type":
			return keepString(&kind, value)
		case "text", "image_url", "file":
			members, name, member = members+1, field, value
			return nil
		}
		return refuse("has no counterpart")
	})
	if refused != nil {
		return refused
	}
	kindName := stringOf(kind)
	allowed := kindName == "text" || fromUser && (kindName == "image_url" || kindName == "file")
	fits := members == 0 || members == 1 && name == kindName
	switch {
	case kind == nil:
		return refuse("is missing").in("type")
	case !allowed || !fits:
		return refuse("has no counterpart here").in("type")
	case members == 0:
		return refuse("is missing").in(kindName)
	case kindName == "image_url":
		return p.readImage(member).in(kindName)
	case kindName == "file":
		return p.readFile(member).in(kindName)
	}
	return keepText(&p.Text, member).in(kindName)
}

// requirePresent refuses a member that is missing.
func requirePresent(value []byte) *refusal {
	if value == nil {
		return refuse("is missing")
	}
	return nil
}

var (
	imageFields = []string{"url", "detail"}
	fileFields  = []string{"filename", "file_data", "file_id"}
)

// readImage reads an image that stands in the body itself, or at an address of the web.
func (p *Part) readImage(value []byte) *refusal {
	var url []byte
	refused := eachMember(value, imageFields, func(name string, value []byte) *refusal {
		if name == "url" {
			return keepText(&url, value)
		}
		return requireValue(value, `"auto"`)
	})
	if refused != nil {
		return refused
	}
	if url == nil {
		return refuse("is missing").in("url")
	}
	return p.imageAt(url).in("url")
}

// mediaTypes lists the types that stand before the data, by Media.
var mediaTypes = []string{PNG: "image/png", JPEG: "image/jpeg", WebP: "image/webp", GIF: "image/gif"}

// imageAt makes the part a Link to an address of the web, or an Image with the data of a data URL.
// It refuses media types that OpenAI does not take.
func (p *Part) imageAt(url []byte) *refusal {
	if isSecure(rawjson.Inner(url)) {
		p.Kind, p.Text = Link, url
		return nil
	}
	media, data, ok := dataURL(url)
	if !ok {
		return refuse("is neither a data URL in base64 nor an address that begins with https://")
	}
	// at is the Media itself: the list has no type at 0.
	at := slices.Index(mediaTypes, media)
	if at <= 0 {
		return refuse("is not png, jpeg, webp or gif")
	}
	p.Kind, p.Media, p.Text = Image, Media(at), data
	return checkBase64(data)
}

// isSecure reports whether a URL names a host behind TLS. Slashes may be escaped.
func isSecure(url []byte) bool {
	host, ok := bytes.CutPrefix(url, []byte("https://"))
	if !ok {
		host, ok = bytes.CutPrefix(url, []byte(`https:\/\/`))
	}
	return ok && len(host) > 0
}

// pdf is the media type of the files that other dialects take, too.
const pdf = "application/pdf"

// readFile reads a file that stands in the body itself. A file that OpenAI keeps has an id, and no
// other provider has it.
func (p *Part) readFile(value []byte) *refusal {
	var data []byte
	refused := eachMember(value, fileFields, func(name string, value []byte) *refusal {
		switch name {
		case "filename":
			return keepText(&p.Name, value)
		case "file_data":
			return keepText(&data, value)
		}
		return refuse("has no counterpart")
	})
	if refused != nil {
		return refused
	}
	if data == nil {
		return refuse("is missing").in("file_data")
	}
	media, inner, ok := dataURL(data)
	if !ok || media != pdf {
		return refuse("is not a data URL of " + pdf + " in base64").in("file_data")
	}
	p.Kind, p.Text = Document, inner
	return checkBase64(inner).in("file_data")
}

// maxHead bounds the part before the data, in bytes: each character may be an escape of 6.
const maxHead = 6 * len("data:"+pdf+";base64,")

// dataURL returns the media type and the data of a data URL in base64. It does not check the data.
func dataURL(url []byte) (media string, data []byte, ok bool) {
	inner := rawjson.Inner(url)
	comma := bytes.IndexByte(inner[:min(len(inner), maxHead)], ',')
	if comma < 0 {
		return "", nil, false
	}
	head := stringOf(slices.Concat([]byte{'"'}, inner[:comma], []byte{'"'}))
	media, isData := strings.CutPrefix(head, "data:")
	media, isBase64 := strings.CutSuffix(media, ";base64")
	return media, inner[comma+1:], isData && isBase64
}

// checkBase64 refuses data that another reader might read in another way: other alphabets, missing
// padding, and every escape but that of a slash.
func checkBase64(data []byte) *refusal {
	padding := len(data) - len(bytes.TrimRight(data, "="))
	digits := padding
	for i := 0; i < len(data)-padding; i++ {
		if data[i] == '\\' && data[i+1] == '/' {
			i++
		}
		if !isBase64(data[i]) {
			return refuse("is not plain base64")
		}
		digits++
	}
	if padding > 2 || digits == padding || digits%4 != 0 {
		return refuse("is incomplete base64")
	}
	return nil
}

func isBase64(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/'
}
