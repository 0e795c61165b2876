package export

import (
	"fmt"
	"strings"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider/rawjson"
)

// A column has a name, and says where in an item its value is.
type column struct {
	name   string
	from   source
	member string // of the source, "" if it is named like the column
	path   path   // of fromPath
}

// source is a part of an item.
type source uint8

const (
	fromOwn   source = iota // what headrace adds
	fromUsage               // its tokens
	fromFault               // why the item failed
	fromResponse
	fromID
	fromText
	fromFinish
	fromBody
	fromPath
)

// knownColumns are the columns that --fields chooses from. The first ones are there without it.
var knownColumns = [...]column{
	{name: "id", from: fromID},
	{name: "line"},
	{name: "model"},
	{name: "text", from: fromText},
	{name: "finish", from: fromFinish},
	{name: "input_tokens", from: fromUsage},
	{name: "output_tokens", from: fromUsage},
	{name: "cost_usd"},
	{name: "attempts"},
	{name: "queued_ms"},
	{name: "waited_ms"},
	{name: "latency_ms"},
	{name: "error", from: fromFault, member: "code"},
	{name: "message", from: fromFault},

	{name: "cached_tokens", from: fromUsage},
	{name: "reasoning_tokens", from: fromUsage},
	{name: "status", from: fromResponse, member: "status_code"},
	{name: "lane"},
	{name: "provider"},
	{name: "served"},
	{name: "simulated"},
	{name: "file"},
	{name: "file_line"},
	{name: "key"},
	{name: "metadata"},
	{name: "body", from: fromBody},
}

// usualColumns is the number of known columns that are there without --fields.
const usualColumns = 14

// valueIn returns the value that the column shows of an item.
func (c *column) valueIn(r *row) value {
	name := c.member
	if name == "" {
		name = c.name
	}
	var in []byte
	switch c.from {
	case fromOwn:
		return jsonValue(*r.own.member(name))
	case fromID:
		return jsonValue(r.id)
	case fromPath:
		return jsonValue(c.path.valueIn(r))
	case fromUsage:
		in = r.own.usage
	case fromFault:
		in = r.fault
	case fromResponse:
		in = r.response
	default:
		r.readBody()
		switch c.from {
		case fromText:
			return r.text
		case fromFinish:
			return r.finish
		}
		return jsonValue(r.body)
	}
	return jsonValue(rawjson.Lookup(in, name))
}

// Fields returns the names of all known columns.
func Fields() (names []string) {
	for _, c := range &knownColumns {
		names = append(names, c.name)
	}
	return names
}

// columnIndex returns the index of the column of that name; -1 if there is none.
func columnIndex(columns []column, name string) int {
	for i := range columns {
		if columns[i].name == name {
			return i
		}
	}
	return -1
}

// chosenColumns returns the columns of --fields, or the usual ones, followed by those of --field.
func (f *flags) chosenColumns() (list []column, err error) {
	if len(f.fields) == 0 {
		list = append(list, knownColumns[:usualColumns]...)
	}
	for _, name := range f.fields {
		i := columnIndex(knownColumns[:], name)
		if i < 0 {
			return nil, fmt.Errorf("--fields: %q is not known: %suse %s, or --field NAME=PATH", name, settings.DidYouMean(settings.Nearest(name, Fields())), strings.Join(Fields(), ", "))
		}
		list = append(list, knownColumns[i])
	}
	for _, given := range f.field {
		name, at, cut := strings.Cut(given, "=")
		if !cut || name == "" {
			return nil, fmt.Errorf("--field %q is invalid: want NAME=PATH, such as tool=response.body.choices[0].message.tool_calls[0].function.name", given)
		}
		p, ok := parsePath(at)
		if !ok {
			return nil, fmt.Errorf(`--field %s: %q is invalid: want a path such as response.body.choices[0].message or answer["a.b"], that begins with %s`, name, at, strings.Join(roots, ", "))
		}
		if p[0].name == "input" && len(f.join) == 0 {
			return nil, fmt.Errorf("--field %s: %q is a field of the input: add --join INPUT", name, at)
		}
		list = append(list, column{name: name, from: fromPath, path: p})
	}
	for i, c := range list {
		if columnIndex(list[:i], c.name) >= 0 {
			return nil, fmt.Errorf("two columns have the name %q: choose another", c.name)
		}
	}
	return list, nil
}

// mostNames bounds the columns that the names of members make. Wider tables open in few programs, and
// answers with ever new names must not fill memory.
const mostNames = 1000

// names are the names of members of many objects, in the order in which they first came.
type names struct {
	list  []string
	known map[string]bool
}

// add adds the names of an object's members. More names than the bound are an error.
func (n *names) add(object []byte) error {
	for w := rawjson.WalkIn(object); w.Next(); w.Skip() {
		if n.known[string(w.Name)] {
			continue
		}
		if len(n.list) == mostNames {
			return fmt.Errorf("more than %d different names would be columns: choose with --field NAME=PATH", mostNames)
		}
		if n.known == nil {
			n.known = make(map[string]bool)
		}
		n.known[string(w.Name)] = true
		n.list = append(n.list, string(w.Name))
	}
	return nil
}

// columnsUnder returns a column for each name under a root. The title starts with the root if the name is taken, or
// may not stand alone.
func (n *names) columnsUnder(root string, alone bool, taken []column) (list []column) {
	for _, name := range n.list {
		title := name
		if !alone || columnIndex(taken, name) >= 0 {
			title = root + "." + name
		}
		p := path{{name: root}, {name: name}}
		list = append(list, column{name: title, from: fromPath, path: p})
	}
	return list
}
