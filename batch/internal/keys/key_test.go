package keys

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const chat, embed = "/v1/chat/completions", "/v1/embeddings"

func keyOf(endpoint string, body []byte, id string) string {
	return new(Maker).Given(endpoint, body, []byte(id)).String()
}

// The key does not depend on white space and the order of keys, at any depth.
func TestKeyIgnoresLayout(t *testing.T) {
	const want = `{"a":{"x":1,"y":[{"p":1,"q":2},"s"]},"b":"t","c":[]}`
	same := []string{
		`{"c":[],"b":"t","a":{"y":[{"q":2,"p":1},"s"],"x":1}}`,
		" { \"a\" :\t{\"x\":1,\n\"y\":[ {\"p\":1 , \"q\":2} ,\"s\" ]} ,\r\"b\":\"t\",\"c\":[ ] } ",
	}
	for _, body := range same {
		if keyOf(chat, []byte(body), "i") != keyOf(chat, []byte(want), "i") {
			t.Errorf("%s has another key than %s", body, want)
		}
	}
}

// Whatever else differs gives another key: each value, each name, order in an
// array, the endpoint, the id.
func TestKeyTellsQuestionsApart(t *testing.T) {
	asked := []struct{ endpoint, body, id string }{
		{chat, `{"a":1,"b":[1,2]}`, "i"},
		{chat, `{"a":1.0,"b":[1,2]}`, "i"},
		{chat, `{"a":"1","b":[1,2]}`, "i"},
		{chat, `{"a":1,"b":[2,1]}`, "i"},
		{chat, `{"a":1,"b":[12]}`, "i"},
		{chat, `{"a":1,"c":[1,2]}`, "i"},
		{chat, `{"a":1,"b":[1,2],"c":null}`, "i"},
		{chat, `{"a":1,"b":["1,2"]}`, "i"},
		{chat, `{"a":1,"b":["1","2"]}`, "i"},
		{chat, `{"a":1,"b":["1", "2 "]}`, "i"},
		{chat, `{"a":1,"a":2}`, "i"},
		{chat, `{"a":2,"a":1}`, "i"},
		{chat, `{"a":1,"b":[1,2]}`, "j"},
		{chat, `{"a":1,"b":[1,2]}`, ""},
		{embed, `{"a":1,"b":[1,2]}`, "i"},
	}
	seen := map[string]int{}
	for i, q := range asked {
		key := keyOf(q.endpoint, []byte(q.body), q.id)
		if j, ok := seen[key]; ok {
			t.Errorf("%v and %v have the same key", asked[j], q)
		}
		seen[key] = i
	}
}

// A key made in an earlier release must be made again today: result files hold it.
func TestKeyIsStable(t *testing.T) {
	if got := keyOf(chat, []byte(`{"model":"m","messages":[]}`), "a"); got != stableKey {
		t.Errorf("key is %s, was %s", got, stableKey)
	}
}

const stableKey = "b54b3c204af4d2c0fa2020b6644edd89"

// shuffled writes v as JSON with its keys in a random order and random white space.
func shuffled(rng *rand.Rand, v any) string {
	space := func() string { return []string{"", " ", "\n\t"}[rng.IntN(3)] }
	switch v := v.(type) {
	case map[string]any:
		parts := []string{}
		for k, e := range v {
			name, _ := json.Marshal(k)
			parts = append(parts, space()+string(name)+space()+":"+space()+shuffled(rng, e)+space())
		}
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return "{" + strings.Join(parts, ",") + space() + "}"
	case []any:
		parts := []string{}
		for _, e := range v {
			parts = append(parts, space()+shuffled(rng, e)+space())
		}
		return "[" + strings.Join(parts, ",") + space() + "]"
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// sizeOf counts the values in v, itself included.
func sizeOf(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += sizeOf(e)
		}
	case []any:
		for _, e := range v {
			n += sizeOf(e)
		}
	}
	return n
}

// edited gives v with its n-th value replaced by one that cannot have been there.
func edited(v any, n *int) any {
	if *n--; *n < 0 {
		return "edited\x00value"
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = e
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if *n >= 0 {
				out[k] = edited(v[k], n)
			}
		}
		return out
	case []any:
		out := append([]any{}, v...)
		for i := range v {
			if *n >= 0 {
				out[i] = edited(v[i], n)
			}
		}
		return out
	}
	return v
}

// Layout never changes a key, and an edit of any one value always does.
func FuzzKey(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":"\"}"}],"n":1e3}`, uint64(1))
	f.Add(`{"b":{"d":[],"c":{}},"a":[[],[{}]],"":null}`, uint64(2))
	f.Add(`{"\u0061":1,"a\\":2,"a\"":3}`, uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var v map[string]any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if dec.Decode(&v) != nil || v == nil {
			t.Skip()
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		key := func(v any) string { return keyOf(chat, []byte(shuffled(rng, v)), "") }
		if one, other := key(v), key(v); one != other {
			t.Errorf("the layout of %s changes the key", text)
		}
		n := rng.IntN(sizeOf(v))
		if changed := edited(v, &n); key(v) == key(changed) {
			t.Errorf("%v and %v have the same key", v, changed)
		}
	})
}
