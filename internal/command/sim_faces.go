package command

import (
	"slices"
	"strings"

	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/sim"
	simface "github.com/headrace/headrace/provider/sim/face"
	"github.com/headrace/headrace/provider/sim/openai"
)

// dialectAzure is OpenAI's dialect at Azure's addresses.
const dialectAzure = "azure"

// simDialects lists the values of --dialect.
func simDialects() []string {
	var names []string
	for _, e := range all.All() {
		names = append(names, e.Dialect.Name())
	}
	return slices.Insert(names, 1, dialectAzure) // after OpenAI's
}

// simDialectList lists all of them, in words.
func simDialectList() string {
	names := simDialects()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// setFace gives the simulated provider the face of a dialect. Without one it has OpenAI's.
func setFace(to *simface.Face, dialect string) error {
	if dialect == dialectAzure {
		*to = openai.Azure{}
		return nil
	}
	entry, known := all.Named(dialect)
	if !known {
		return refuse("--dialect: %q is not known: use %s", dialect, simDialectList())
	}
	if *to = entry.Face; dialect == providerOpenAI {
		*to = nil
	}
	return nil
}

// vendorOf returns the vendor that the simulated provider looks like: the first row of the face's
// dialect, or of its name; none, if that is OpenAI itself.
func vendorOf(c sim.Config) (v catalog.Vendor) {
	if c.Face == nil {
		return v
	}
	name := dialectOf(c.Face)
	rows := catalog.Rows()
	i := slices.IndexFunc(rows, func(v catalog.Vendor) bool { return v.Dialect.Name() == name })
	if i < 0 {
		i = slices.IndexFunc(rows, func(v catalog.Vendor) bool { return v.Name == name })
	}
	return rows[i]
}

// dialectOf returns the word of --dialect for a face.
func dialectOf(f simface.Face) string {
	if _, is := f.(openai.Azure); is {
		return dialectAzure
	}
	return f.Name()
}

// simBase returns the path below which clients of a configuration's face look.
func simBase(c sim.Config) string {
	if c.Face == nil {
		return openai.Face{}.Base()
	}
	return c.Face.Base()
}
