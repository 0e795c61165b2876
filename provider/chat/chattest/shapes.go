package chattest

import "strconv"

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

// turnOfTools returns a call or two, and their results.
func (g *generator) turnOfTools() []string {
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
