package chattest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// FromChat is the translation under test.
type FromChat func(provider.Request, provider.Defaults) ([]byte, error)

// bound goes to every translation, so that no dialect refuses for want of one.
var bound = provider.Defaults{MaxTokens: 7}

// Check tests a translation with any text. Either the translation refuses the text, with a field
// and a reason, or it sends JSON that says, by read, the same pieces in the same order. With a
// field added that has no counterpart it refuses the text.
func Check(t *testing.T, fromChat FromChat, read func(sent []byte) []string, body []byte) {
	t.Helper()
	before := bytes.Clone(body)
	sent, err := fromChat(provider.Request{Model: "m", Body: body}, bound)
	if !bytes.Equal(before, body) {
		t.Fatalf("%q was changed", before)
	}
	if err != nil {
		if why := new(provider.Untranslatable); !errors.As(err, &why) || why.Field == "" || why.Why == "" || why.Dialect == "" {
			t.Fatalf("%q: refused with %#v", body, err)
		}
		return
	}
	if !json.Valid(sent) {
		t.Fatalf("%q: sent %q, which is no JSON", body, sent)
	}
	if want, got := Said(body), read(sent); len(want) == 0 || !slices.Equal(want, got) {
		t.Fatalf("%q: sent %q\n says %q\nwant %q", body, sent, got, want)
	}
	for _, field := range []string{`"verbosity":"low"`, `"seeds":1`, `"n":2`, `"metadata":{"a":"b"}`} {
		worse := slices.Concat([]byte("{"+field+","), bytes.TrimSpace(body)[1:])
		if _, err := fromChat(provider.Request{Model: "m", Body: worse}, bound); err == nil {
			t.Fatalf("%q is not refused", worse)
		}
	}
}

// CheckBodies checks the translation of n random bodies in the same way. Each must be translated,
// unless may says that it need not be.
func CheckBodies(t *testing.T, n int, with With, fromChat FromChat, read func(sent []byte) []string, may func(field string) bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	for range n {
		body := Body(rng, with)
		Check(t, fromChat, read, body)
		_, err := fromChat(provider.Request{Model: "m", Body: body}, bound)
		if why := new(provider.Untranslatable); errors.As(err, &why) && !may(why.Field) {
			t.Fatalf("%s is refused: %v", body, err)
		}
	}
}

// Seeds gives a fuzzer random bodies, whole and broken, to begin with.
func Seeds(f *testing.F) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 20 {
		body := Body(rng, Images|Links|Files|Schemas|Tools|Extremes|ResultParts|Users|FreeJSON)
		f.Add(body)
		body = bytes.Clone(body)
		body[rng.IntN(len(body))] = "{}[],:\"\\ \n\x01\xc3x0"[rng.IntN(14)]
		f.Add(body)
	}
}

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
