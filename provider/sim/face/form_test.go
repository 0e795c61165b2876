package face

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

var (
	name  = Form{Is: String, Words: []string{"a", "b"}}
	turns = Form{Is: Array, Items: &name, Least: 1, Most: 3}
	whole = Form{Is: Object, Need: []string{"turns", "top"}, Spell: strings.ToLower, Fields: map[string]Form{
		"turns": turns, "top": {Is: Integer, Least: 1, Most: 9}, "any": {}, "in": {Is: Object, Fields: map[string]Form{"on": {Is: Bool | String}}},
	}}
)

func spelt(f Flaw) string {
	path := ""
	for _, s := range f.Path {
		if s.Name == "" {
			path += fmt.Sprintf("[%d]", s.Place)
		} else {
			path += "." + s.Name
		}
	}
	return fmt.Sprintf("%d %s", f.What, path)
}

// The first flaw is found, with the path to it; null is as good as nothing.
func TestForm(t *testing.T) {
	const good = `"turns":["a"],"top":1`
	for body, want := range map[string]string{
		`{` + good + `}`: "0 ",
		`{` + good + `,"any":[{"x":[1]}],"in":null}`: "0 ",
		`{` + good + `,"IN":{"on":true}}`:            "0 ",
		`{` + good + `,"in":{"on":"x"}}`:             "0 ",
		`{` + good + `,"in":{"on":1}}`:               fmt.Sprint(WrongType, " .in.on"),
		`{` + good + `,"in":{"ON":true}}`:            fmt.Sprint(Unknown, " .in.ON"),
		`{` + good + `,"out":1}`:                     fmt.Sprint(Unknown, " .out"),
		`{"top":1}`:                                  fmt.Sprint(Missing, " .turns"),
		`{"turns":null,"top":1}`:                     fmt.Sprint(Missing, " .turns"),
		`{"turns":["a"]}`:                            fmt.Sprint(Missing, " .top"),
		`{"turns":[],"top":1}`:                       fmt.Sprint(TooSmall, " .turns"),
		`{"turns":["a","a","a","a"],"top":1}`:        fmt.Sprint(TooGreat, " .turns"),
		`{"turns":["a","c"],"top":1}`:                fmt.Sprint(WrongWord, " .turns[1]"),
		`{"turns":["a",1],"top":1}`:                  fmt.Sprint(WrongType, " .turns[1]"),
		`{"turns":["a"],"top":0}`:                    fmt.Sprint(TooSmall, " .top"),
		`{"turns":["a"],"top":10}`:                   fmt.Sprint(TooGreat, " .top"),
		`{"turns":["a"],"top":1.5}`:                  fmt.Sprint(WrongType, " .top"),
		`{"turns":["a"],"top":1e999}`:                fmt.Sprint(WrongType, " .top"),
		`[]`:                                         fmt.Sprint(WrongType, " "),
	} {
		if flaw, flawed := whole.Check(gjson.Parse(body)); spelt(flaw) != want || flawed != (want != "0 ") {
			t.Errorf("%s: %s, want %s", body, spelt(flaw), want)
		}
	}
}

// A flaw's path is its own, however the walk went on before it.
func TestFlawKeepsItsPath(t *testing.T) {
	deep := Form{Items: &Form{Is: Object, Fields: map[string]Form{"a": {Items: &name}}}}
	flaw, _ := deep.Check(gjson.Parse(`[{"a":["a","b"]},{"a":["a","b","c"]}]`))
	if spelt(flaw) != fmt.Sprint(WrongWord, " [1].a[2]") {
		t.Error(spelt(flaw))
	}
}

// What the user said last is answered; a turn without words is passed over.
func TestTurns(t *testing.T) {
	for body, want := range map[string]string{
		`[{"role":"user","c":"one"},{"role":"model","c":"two"},{"role":"user","c":[{"text":"three"},{"x":1},{"text":"four"}]}]`: "three\nfour",
		`[{"role":"user","c":"one"},{"role":"user","c":[{"result":1}]}]`:                                                        "one",
		`[{"role":"model","c":"one"},{"role":"model","c":"two"}]`:                                                               "two",
		`[{"role":"user","c":""}]`: "",
	} {
		var p Prompt
		if p.Turns(gjson.Parse(body), "c"); p.First() != want {
			t.Errorf("%s: %q", body, p.First())
		}
	}
	var none Prompt
	if none.Turns(gjson.Parse(`[]`), "c"); none.First() != "" || none.Texts != nil {
		t.Errorf("%q", none.Texts)
	}
}

func TestGrouped(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 40000: "40,000", 1234567.9: "1,234,567"} {
		if Grouped(x) != want {
			t.Errorf("%v: %s", x, Grouped(x))
		}
	}
}

// Whatever stands in a body, the check ends with a flaw or without.
func FuzzForm(f *testing.F) {
	for _, body := range []string{``, `{}`, `[`, `{"turns":["a"],"top":1}`, `{"in":{"on":[}}`, `{"turns":{"a":[]}}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if flaw, flawed := whole.Check(gjson.Parse(body)); flawed != (flaw.What != NoMistake) || flawed && flaw.What == Unknown && len(flaw.Path) == 0 {
			t.Errorf("%+v", flaw)
		}
	})
}
