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
	return r.place(i, &m)
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

// place puts a message into its place.
func (r *reader) place(i int, m *message) *refusal {
	role := word(m.role)
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
func content(message int, value []byte, fromUser bool) ([]Part, *refusal) {
	if value == nil {
		return nil, refuse("is missing").in("content")
	}
	if value[0] == '"' {
		parts := []Part{{message: message, index: -1}}
		return parts, text(&parts[0].Text, value).in("content")
	}
	var parts []Part
	refused := list(value, func(index int, value []byte) *refusal {
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
	allowed := which == "text" || fromUser && (which == "image_url" || which == "file")
	fits := members == 0 || members == 1 && name == which
	switch {
	case kind == nil:
		return refuse("is missing").in("type")
	case !allowed || !fits:
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

var (
	imageFields = []string{"url", "detail"}
	fileFields  = []string{"filename", "file_data", "file_id"}
)

// image reads an image that stands in the body itself, or at an address of the web.
func (p *Part) image(value []byte) *refusal {
	var url []byte
	refused := object(value, imageFields, func(name string, value []byte) *refusal {
		if name == "url" {
			return text(&url, value)
		}
		return only(value, `"auto"`)
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
	return base64(data)
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

// file reads a file that stands in the body itself. A file that OpenAI keeps has an id, and no
// other provider has it.
func (p *Part) file(value []byte) *refusal {
	var data []byte
	refused := object(value, fileFields, func(name string, value []byte) *refusal {
		switch name {
		case "filename":
			return text(&p.Name, value)
		case "file_data":
			return text(&data, value)
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
	return base64(inner).in("file_data")
}

// maxHead bounds the part before the data, in bytes: each character may be an escape of 6.
const maxHead = 6 * len("data:"+pdf+";base64,")

// dataURL takes a data URL in base64 apart. It does not check the data.
func dataURL(url []byte) (media string, data []byte, ok bool) {
	inner := rawjson.Inner(url)
	comma := bytes.IndexByte(inner[:min(len(inner), maxHead)], ',')
	if comma < 0 {
		return "", nil, false
	}
	head := word(slices.Concat([]byte{'"'}, inner[:comma], []byte{'"'}))
	media, isData := strings.CutPrefix(head, "data:")
	media, isBase64 := strings.CutSuffix(media, ";base64")
	return media, inner[comma+1:], isData && isBase64
}

// base64 refuses data that others would read otherwise: other alphabets, missing padding, and
// every escape but that of a slash.
func base64(data []byte) *refusal {
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
