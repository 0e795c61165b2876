package providertest

import "testing"

// A recording tells how it was found and where, in one of three words.
func TestSource(t *testing.T) {
	for value, want := range map[string]Source{
		"documented: https://docs.example/errors":    {Documented, "https://docs.example/errors"},
		"second-hand: owner/name issue 7: a comment": {SecondHand, "owner/name issue 7: a comment"},
		"stated: OpenAI's shape":                     {Stated, "OpenAI's shape"},
	} {
		c, err := parse("v_x", []byte("# kind: none\n# source: "+value+"\n# also: a b\nHTTP/1.1 200 OK\n\n{}"))
		if err != nil || c.Source != want || !c.Of("v") || !c.Of("a") || !c.Of("b") || c.Of("c") {
			t.Errorf("%s: %+v of %q, %v", value, c.Source, c.Also, err)
		}
	}
	for _, value := range []string{"", "https://docs.example/errors", "seen: somewhere", "documented", "documented: "} {
		if c, err := parse("v_x", []byte("# source: "+value+"\nHTTP/1.1 200 OK\n\n{}")); err == nil {
			t.Errorf("%q is taken as %+v", value, c.Source)
		}
	}
}
