package chattest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
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
