package all

import (
	"slices"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/cohere"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
	simanthropic "github.com/headrace/headrace/provider/sim/anthropic"
	simcohere "github.com/headrace/headrace/provider/sim/cohere"
	simconverse "github.com/headrace/headrace/provider/sim/converse"
	"github.com/headrace/headrace/provider/sim/face"
	simgemini "github.com/headrace/headrace/provider/sim/gemini"
	simopenai "github.com/headrace/headrace/provider/sim/openai"
)

// An Entry holds everything about one dialect.
type Entry struct {
	Dialect provider.Dialect
	Face    face.Face // of the simulated provider that speaks it
}

// all is the list: a new dialect is one more line.
var all = []Entry{
	{Dialect: openai.Dialect{}, Face: simopenai.Face{}},
	{Dialect: anthropic.Dialect{}, Face: simanthropic.Face{}},
	{Dialect: gemini.Dialect{}, Face: simgemini.Face{}},
	{Dialect: converse.Dialect{}, Face: simconverse.Face{}},
	{Dialect: cohere.Dialect{}, Face: simcohere.Face{}},
}

// All returns every dialect, OpenAI's first.
func All() []Entry { return slices.Clone(all) }

// Named returns the dialect with a name; false if there is none.
func Named(name string) (Entry, bool) {
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Dialect.Name() == name })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}
