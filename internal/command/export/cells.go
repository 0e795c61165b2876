package export

import (
	"bytes"
	"strings"

	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/provider/rawjson"
)

// A form writes rows.
type form interface {
	head(dst []byte, columns []column) []byte
	row(dst []byte, columns []column, r *row) []byte
}

// formats are the words of --format.
var formats = []string{"csv", "tsv", "jsonl", "md"}

// formOf returns the form for a value of --format.
func formOf(word string, spreadsheet bool) form {
	switch word {
	case "tsv":
		return &table{separator: '\t', guarded: spreadsheet}
	case "jsonl":
		return jsonLines{}
	case "md":
		return &markdown{}
	}
	return &table{separator: ',', guarded: spreadsheet}
}

// table is CSV as RFC 4180 has it, but with line feeds; or the same with tabs.
type table struct {
	separator byte
	guarded   bool // for spreadsheets
	scratch   []byte
}

// byteOrderMark tells spreadsheets that the text is UTF-8.
const byteOrderMark = "\uFEFF"

// head appends the names of the columns as the first line.
func (t *table) head(dst []byte, columns []column) []byte {
	if t.guarded {
		dst = append(dst, byteOrderMark...)
	}
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, t.separator)
		}
		dst = t.appendText(dst, []byte(c.name))
	}
	return append(dst, '\n')
}

// row appends a line with a cell for each column. JSON objects and lists become text.
func (t *table) row(dst []byte, columns []column, r *row) []byte {
	for i := range columns {
		if i > 0 {
			dst = append(dst, t.separator)
		}
		v := columns[i].valueIn(r)
		switch {
		case v.kind == missing && len(columns) == 1:
			dst = append(dst, `""`...) // readers pass over an empty line
		case v.kind == missing:
		case v.kind == isText || rawjson.IsString(v.json) || v.json[0] == '{' || v.json[0] == '[':
			t.scratch = v.appendContents(t.scratch[:0])
			dst = t.appendText(dst, t.scratch)
		default:
			dst = append(dst, v.json...)
		}
	}
	return append(dst, '\n')
}

// appendContents appends the text of a value as people read it: strings without quotes and escapes.
func (v value) appendContents(dst []byte) []byte {
	switch {
	case v.kind == isText:
		return append(dst, v.text...)
	case rawjson.IsString(v.json):
		inner := rawjson.Inner(v.json)
		for size := 0; ; inner = inner[size:] {
			escape := bytes.IndexByte(inner, '\\')
			if escape < 0 {
				return append(dst, inner...)
			}
			dst, size = rawjson.AppendEscaped(append(dst, inner[:escape]...), inner[escape:])
			size += escape
		}
	}
	return append(dst, v.json...)
}

// appendText appends a cell of text, quoted where that is needed. An empty text is "", while a missing value has no
// quotes. NUL becomes U+FFFD, as readers of CSV stop at it.
func (t *table) appendText(dst, text []byte) []byte {
	if bytes.IndexByte(text, 0) >= 0 {
		text = bytes.ReplaceAll(text, []byte{0}, []byte("\uFFFD"))
	}
	formula := t.guarded && len(text) > 0 && strings.IndexByte("=+-@\t\r", text[0]) >= 0
	quoted := formula || len(text) == 0 || text[0] == ' ' || text[len(text)-1] == ' ' ||
		bytes.IndexByte(text, t.separator) >= 0 || bytes.IndexByte(text, '"') >= 0 || bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
	if !quoted {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	if formula {
		dst = append(dst, '\'')
	}
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			break
		}
		dst = append(append(dst, text[:i+1]...), '"')
		text = text[i+1:]
	}
	return append(append(dst, text...), '"')
}

// jsonLines is an object a line, each with all columns.
type jsonLines struct{}

func (jsonLines) head(dst []byte, _ []column) []byte { return dst }

// row appends an object with a member for each column; a missing value is null.
func (jsonLines) row(dst []byte, columns []column, r *row) []byte {
	for i := range columns {
		c, before := &columns[i], byte(',')
		if i == 0 {
			before = '{'
		}
		dst = append(rawjson.AppendString(append(dst, before), c.name), ':')
		v := c.valueIn(r)
		switch {
		case v.kind == missing:
			dst = append(dst, "null"...)
		case v.kind == isText:
			dst = rawjson.AppendString(dst, v.text)
		case rawjson.IsString(v.json) && bytes.Contains(v.json, []byte(`\u`)): // half a character is an error to some readers
			dst = rawjson.AppendString(dst, string(rawjson.AppendText(nil, v.json)))
		default:
			dst = append(dst, v.json...)
		}
	}
	return append(dst, "}\n"...)
}

// markdown is a table of GitHub's Markdown.
type markdown struct{ scratch []byte }

// head appends the names of the columns, and the line below them that Markdown demands.
func (m *markdown) head(dst []byte, columns []column) []byte {
	for _, c := range columns {
		dst = append(append(dst, "| "...), cell(c.name)+" "...)
	}
	return append(dst, "|\n|"+strings.Repeat("---|", len(columns))+"\n"...)
}

// row appends a line with a cell for each column.
func (m *markdown) row(dst []byte, columns []column, r *row) []byte {
	for i := range columns {
		dst = append(dst, "| "...)
		if v := columns[i].valueIn(r); v.kind != missing {
			m.scratch = v.appendContents(m.scratch[:0])
			dst = append(dst, cell(string(m.scratch))...)
		}
		dst = append(dst, ' ')
	}
	return append(dst, "|\n"...)
}

// cell escapes a text for a cell of a Markdown table: it stays on one line, and none of it is markup.
func cell(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable.Markdown(line)
	}
	return strings.Join(lines, "<br>")
}
