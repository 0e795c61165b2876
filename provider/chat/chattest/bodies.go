package chattest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// With is a set of shapes that a random body may have besides text, numbers and stops.
type With uint16

// The further shapes.
const (
	Images With = 1 << iota
	Schemas
	Tools
	Extremes    // seeds, and temperatures above 1, which some dialects refuse
	ResultParts // results of tools in parts
	Links       // images at addresses of the web
	Files       // PDFs
	Users       // the field user
	FreeJSON    // answers that are any JSON
)

// Body returns a random chat body of the translatable subset. Every member may stand anywhere,
// fields at their defaults among them, with white space and escapes in all their forms. One seed
// gives one body.
func Body(rng *rand.Rand, with With) []byte {
	g := &generator{Rand: rng, with: with}
	return []byte(g.object(append(g.settings(), "messages", g.messages())...))
}

type generator struct {
	*rand.Rand
	with  With
	calls int // of tools, so far
}

func (g *generator) maybe(percent int) bool { return g.IntN(100) < percent }

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// object writes pairs of names and values in any order.
func (g *generator) object(pairs ...string) string {
	g.Shuffle(len(pairs)/2, func(i, j int) {
		pairs[2*i], pairs[2*j] = pairs[2*j], pairs[2*i]
		pairs[2*i+1], pairs[2*j+1] = pairs[2*j+1], pairs[2*i+1]
	})
	var members []string
	for i := 0; i < len(pairs); i += 2 {
		members = append(members, g.space()+`"`+pairs[i]+`"`+g.space()+":"+g.space()+pairs[i+1])
	}
	return "{" + strings.Join(members, ",") + g.space() + "}"
}

func (g *generator) list(values ...string) string {
	return "[" + g.space() + strings.Join(values, g.space()+","+g.space()) + g.space() + "]"
}

func (g *generator) space() string {
	if g.maybe(90) {
		return ""
	}
	return g.pick(" ", "\t", "\n", "  ")
}

// settings returns the pairs of everything but the messages.
func (g *generator) settings() []string {
	pairs := []string{"model", `"gpt-5-mini"`}
	if g.maybe(80) {
		pairs = append(pairs, g.pick("max_tokens", "max_completion_tokens"), strconv.Itoa(1+g.IntN(5000)))
	}
	if g.maybe(40) {
		pairs = append(pairs, "temperature", g.pick("0", "1", "0.7", "1.0", "1e-1", strconv.FormatFloat(g.Float64(), 'g', -1, 64)))
	} else if g.with&Extremes != 0 && g.maybe(20) {
		pairs = append(pairs, g.pick("temperature", "seed"), g.pick("2", "1.5", "2.0e0"))
		if pairs[len(pairs)-2] == "seed" {
			pairs[len(pairs)-1] = strconv.Itoa(int(g.Int32()))
		}
	}
	if g.maybe(30) {
		pairs = append(pairs, "top_p", strconv.FormatFloat(g.Float64(), 'g', 3, 64))
	}
	if g.maybe(30) {
		pairs = append(pairs, "stop", g.stop())
	}
	if g.with&Schemas != 0 && g.maybe(50) {
		pairs = append(pairs, "response_format", g.format())
	}
	if g.with&FreeJSON != 0 && !slices.Contains(pairs, "response_format") && g.maybe(30) {
		pairs = append(pairs, "response_format", g.object("type", `"json_object"`))
	}
	if g.with&Users != 0 && g.maybe(20) {
		pairs = append(pairs, "user", g.text())
	}
	if g.with&Tools != 0 && g.maybe(60) {
		pairs = append(pairs, g.tools()...)
	}
	return append(pairs, g.neutralFields(pairs)...)
}

func (g *generator) stop() string {
	if g.maybe(30) {
		return g.text()
	}
	var stops []string
	for range 1 + g.IntN(4) {
		stops = append(stops, g.text())
	}
	return g.list(stops...)
}

// neutralFields returns fields with their default values, which change nothing.
func (g *generator) neutralFields(pairsSoFar []string) (pairs []string) {
	for _, field := range [][2]string{
		{"n", "1"},
		{"stream", "false"},
		{"store", "false"},
		{"logprobs", "false"},
		{"frequency_penalty", "0"},
		{"presence_penalty", "0.0"},
		{"logit_bias", "{}"},
		{"tools", "[]"},
		{"response_format", `{"type":"text"}`},
		{"service_tier", `"auto"`},
		{"modalities", g.list(`"text"`)},
		{"metadata", "{}"},
		{"stop", g.list()},
		{"temperature", g.pick("1", "1.0", "10e-1")},
		{"top_p", "1"},
		{"user", "null"},
		{"stream_options", "null"},
		{"seed", "null"},
		{"reasoning_effort", "null"},
	} {
		has := false
		for i := 0; i < len(pairsSoFar); i += 2 {
			has = has || pairsSoFar[i] == field[0]
		}
		if !has && g.maybe(10) {
			pairs = append(pairs, field[0], field[1])
		}
	}
	return pairs
}

// messages returns a list of messages: those of the system first, then turns. The first and the
// last turn are the user's. Two turns of the user's may follow one another.
func (g *generator) messages() string {
	var all []string
	for g.maybe(40) && len(all) < 3 {
		all = append(all, g.object("role", g.pick(`"system"`, `"developer"`), "content", g.content(false)))
	}
	if g.maybe(5) {
		all = append(all, g.object("role", `"system"`, "content", `""`))
	}
	all = append(all, g.user())
	for g.maybe(40) {
		switch {
		case g.maybe(15):
		case g.with&Tools != 0 && g.maybe(40):
			all = append(all, g.toolTurn()...)
		default:
			pairs := []string{"role", `"assistant"`, "content", g.content(false)}
			if g.maybe(10) {
				pairs = append(pairs, "tool_calls", g.list(), "annotations", g.list())
			}
			all = append(all, g.object(pairs...))
		}
		all = append(all, g.user())
	}
	return g.list(all...)
}

func (g *generator) user() string { return g.object("role", `"user"`, "content", g.content(true)) }

// content returns a text or a list of parts. Only a user's message has parts other than texts.
func (g *generator) content(user bool) string {
	if g.maybe(60) {
		return g.text()
	}
	var parts []string
	for range 1 + g.IntN(3) {
		switch {
		case user && g.with&Images != 0 && g.maybe(30):
			parts = append(parts, g.object("type", `"image_url"`, "image_url", g.object("url", g.image())))
		case user && g.with&Links != 0 && g.maybe(15):
			parts = append(parts, g.object("type", `"image_url"`, "image_url", g.object("url", g.pick(`"https://example.com/a.png?b=1&c=%20"`, `"https:\/\/example.com\/\u00e9"`))))
		case user && g.with&Files != 0 && g.maybe(15):
			parts = append(parts, g.object("type", `"file"`, "file", g.object("filename", g.text(), "file_data", `"data:application/pdf;base64,`+g.pick("JVBERi0=", `JVBE\/i0=`)+`"`)))
		default:
			parts = append(parts, g.object("type", `"text"`, "text", g.text()))
		}
	}
	return g.list(parts...)
}

func (g *generator) image() string {
	return `"data:image/` + g.pick("png", "jpeg", "webp") + ";base64," + g.pick("iVBORw0KGgo=", "/9j/4AAQ", `UklGR\/8=`, "AA==") + `"`
}

// text returns a string that is not only white space.
func (g *generator) text() string {
	var b strings.Builder
	b.WriteString(`"` + g.pick("a", "Zz", "42", "?"))
	for range g.IntN(12) {
		b.WriteString(g.pick(" ", "word ", "é", "\u2028", "日本", "😀", `\n`, `\"`, `\\`, `\/`, "/", `\u00e9`, `\ud83d\ude00`, `\u0007`, `\t`, "<b>&", `{\"a\":1}`, "\x7f"))
	}
	return b.String() + `"`
}

// format returns a response_format whose schema every dialect knows.
func (g *generator) format() string {
	return g.object("type", `"json_schema"`, "json_schema",
		g.object("name", `"answer-1"`, "strict", "true", "schema", g.schema(3)))
}

// schema returns the schema of an object as OpenAI's strict outputs demand it.
func (g *generator) schema(depth int) string {
	var names []string
	var pairs []string
	for i := range 1 + g.IntN(3) {
		name := g.pick("a", "type", "é", "$ref", "enum") + strconv.Itoa(i)
		names, pairs = append(names, `"`+name+`"`), append(pairs, name, g.property(depth))
	}
	return g.object("type", `"object"`, "properties", g.object(pairs...), "required", g.list(names...), "additionalProperties", "false")
}

// property returns the schema of a property. Its nesting is bounded by depth, in levels.
func (g *generator) property(depth int) string {
	switch {
	case depth > 0 && g.maybe(20):
		return g.schema(depth - 1)
	case depth > 0 && g.maybe(20):
		return g.object("type", `"array"`, "items", g.property(depth-1), "minItems", g.pick("0", "1"))
	case depth > 0 && g.maybe(10):
		return g.object("anyOf", g.list(g.property(depth-1), `{"type":"null"}`))
	case g.maybe(30):
		return g.object("type", `"string"`, "enum", g.list(`"x"`, g.text()))
	}
	return g.object("type", g.pick(`"string"`, `"number"`, `"boolean"`, `["string","null"]`), "description", g.text())
}

// tools returns pairs that list the tools and say how they are used.
func (g *generator) tools() []string {
	var all []string
	for i := range 1 + g.IntN(2) {
		pairs := []string{"name", `"tool_` + strconv.Itoa(i) + `"`, "parameters", g.schema(2), "description", g.text()}
		if g.maybe(40) {
			pairs = append(pairs, "strict", g.pick("true", "false"))
		}
		all = append(all, g.object("type", `"function"`, "function", g.object(pairs...)))
	}
	pairs := []string{"tools", g.list(all...)}
	if g.maybe(50) {
		named := g.object("type", `"function"`, "function", `{"name":"tool_0"}`)
		pairs = append(pairs, "tool_choice", g.pick(`"auto"`, `"required"`, named))
	}
	return pairs
}

// result returns a string or a list of texts.
func (g *generator) result() string {
	if g.with&ResultParts == 0 || g.maybe(50) {
		return g.text()
	}
	var parts []string
	for range 1 + g.IntN(3) {
		parts = append(parts, g.object("type", `"text"`, "text", g.text()))
	}
	return g.list(parts...)
}

// toolTurn returns a call or two, and their results.
func (g *generator) toolTurn() []string {
	var calls, results []string
	for range 1 + g.IntN(2) {
		g.calls++
		id := `"call_` + strconv.Itoa(g.calls) + `"`
		arguments := g.pick(`"{}"`, `"{\"a\":[1,\"\\n\"]}"`, `" {\"é\" : null} "`)
		calls = append(calls, g.object("id", id, "type", `"function"`, "function", g.object("name", `"tool_0"`, "arguments", arguments)))
		results = append(results, g.object("role", `"tool"`, "tool_call_id", id, "content", g.result()))
	}
	pairs := []string{"role", `"assistant"`, "tool_calls", g.list(calls...)}
	if g.maybe(50) {
		pairs = append(pairs, "content", g.pick("null", `""`, g.text()))
	}
	return append([]string{g.object(pairs...)}, results...)
}
