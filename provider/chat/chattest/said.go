package chattest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Said returns the contents of a chat body, piece by piece and in order, read by encoding/json:
// first the system's messages, then the conversation. Each piece has its role and kind before
// it, such as "user text: hello".
func Said(body []byte) []string {
	var chat struct {
		Messages []struct {
			Role    string
			Content any
			Calls   []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			CallID string `json:"tool_call_id"`
		}
	}
	_ = json.Unmarshal(body, &chat)
	var system, said []string
	for _, m := range chat.Messages {
		switch m.Role {
		case "system", "developer":
			system = append(system, Pieces("system", m.Content)...)
		case "tool":
			said = append(said, Result(m.CallID, m.Content))
		default:
			said = append(said, Pieces(m.Role, m.Content)...)
		}
		for _, call := range m.Calls {
			said = append(said, Call(call.ID, call.Function.Name, []byte(call.Function.Arguments)))
		}
	}
	return append(system, said...)
}

// Pieces returns the pieces of one of OpenAI's contents: a string, or a list of parts. An empty
// string has none.
func Pieces(role string, content any) (said []string) {
	if s, ok := content.(string); ok {
		if s == "" {
			return nil
		}
		return []string{Text(role, s)}
	}
	parts, _ := content.([]any)
	for _, part := range parts {
		p, _ := part.(map[string]any)
		image, isImage := p["image_url"].(map[string]any)
		file, isFile := p["file"].(map[string]any)
		switch {
		case isImage:
			said = append(said, fmt.Sprintf("%s image: %v", role, image["url"]))
		case isFile:
			data, _ := file["file_data"].(string)
			said = append(said, File(strings.TrimPrefix(data, "data:application/pdf;base64,")))
		default:
			said = append(said, Text(role, p["text"]))
		}
	}
	return said
}

// Text returns a piece with its role, in the form of Said, for tests that read a dialect's
// translation of a body; Image, Link, File, Call and Result return the others.
func Text(role string, text any) string { return fmt.Sprintf("%s text: %v", role, text) }

// Image returns the piece for an image with its data.
func Image(media, data string) string { return "user image: data:" + media + ";base64," + data }

// Link returns the piece for an image at an address of the web.
func Link(url string) string { return "user image: " + url }

// File returns the piece for a PDF with its data.
func File(data string) string { return "user file: " + data }

// Call returns the piece for a call of a tool, with its input in one form.
func Call(id, name string, input []byte) string {
	var compact bytes.Buffer
	_ = json.Compact(&compact, input)
	return fmt.Sprintf("call %s %s: %s", id, name, compact.String())
}

// Result returns the piece for a tool's result: a string, or a list of parts of text. A list of
// one part counts as that part.
func Result(id string, content any) string {
	parts, listed := content.([]any)
	if !listed {
		return fmt.Sprintf("result %s: %v", id, content)
	}
	var texts []string
	for _, part := range parts {
		p, _ := part.(map[string]any)
		texts = append(texts, fmt.Sprint(p["text"]))
	}
	return fmt.Sprintf("result %s: %s", id, strings.Join(texts, " + "))
}
