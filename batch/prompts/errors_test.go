package prompts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// A complaint has the id that its line gives, by whatever name and whatever else is wrong; none if the
// line cannot be read or its id is no id.
func TestComplaintsHaveTheIDOfTheirLine(t *testing.T) {
	for _, c := range []struct {
		text   string
		format Format
		want   []string
	}{
		{`{"custom_id":"a"}
			{"id":7,"prompt":[]}
			{"prompt":"q","id":"x"}
			{"prompt":"q","custom_id":"x"}
			{"custom_id":"b","id":"c","prompt":"q"}
			{"key":"k","request":[]}
			{"recordId":"r","modelInput":[]}
			{"key":"k","prompt":[]}`, FormatJSONL, []string{"a", "7", "x", "b", "k", "r", ""}},
		{"{\"custom_id\":\"a\",\"prompt\":\n[\"custom_id\"]\n{\"custom_id\":\"\"}\n{\"custom_id\":{}}\n{\"custom_id\":\"\xff\"}\n{\"custom_id\":null,\"id\":\"z\"}", FormatJSONL, []string{"", "", "", "", "", "z"}},
		{"city,id,prompt,max_tokens\nUlm,a,q,many\nUlm,b\nUlm,\"c\nUlm,,q,many", FormatCSV, []string{"a", "", ""}},
		{"a\x00b", FormatText, []string{""}},
	} {
		_, bad := read(t, c.text, Config{DefaultModel: "m", Format: c.format})
		var got []string
		for _, b := range bad {
			got = append(got, b.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
	tmpl := must.Get(ParseTemplate("{{.none}}"))(t)
	for format, text := range map[Format]string{FormatJSONL: `{"id":"a"}`, FormatCSV: "id,b\na,q"} {
		if _, bad := read(t, text, Config{DefaultModel: "m", Template: tmpl, Format: format}); len(bad) != 1 || bad[0].ID != "a" || !strings.Contains(bad[0].Reason, "none") {
			t.Errorf("%v", bad)
		}
	}
}

// A template's missing field is named, and so are the fields that there are.
func TestTemplateFaultsNameWhatThereIs(t *testing.T) {
	many := "a"
	for n := range 30 {
		many += fmt.Sprintf(",c%02d", n)
	}
	for _, c := range []struct {
		template, input string
		format          Format
		want            string
	}{
		{"Do {{.txt}}", "name,text\nx,y\n", FormatCSV, `in:2: the template asks for {{.txt}}, but the columns are name, text: change the template or the header`},
		{"Do {{.txt}}", `{"text":"hi","n":1}`, FormatJSONL, `in:1: the template asks for {{.txt}}, but the fields are n, text: give the line this field, or change the template`},
		{"Do {{.text}}", "hello\n", FormatText, `in:1: the template asks for {{.text}}, but the only field is prompt: change the template`},
		{"Do {{.text}}", "{}\n", FormatJSONL, `in:1: the template asks for {{.text}}, but there are no fields: give the line this field, or change the template`},
		{"Do {{.x}}", many + "\n" + strings.Repeat(",", 30) + "\n", FormatCSV, `c17, c18 and 11 more: change the template or the header`},
		{"{{.name.first}}", "name\nx\n", FormatCSV, `in:2: the template at {{.name.first}}: can't evaluate field first: give the line this field, or change the template`},
	} {
		tmpl := must.Get(ParseTemplate(c.template))(t)
		r := NewReader(strings.NewReader(c.input), Config{Name: "in", DefaultModel: "m", Template: tmpl, Format: c.format})
		if _, err := r.Next(); !errors.Is(err, ErrTemplate) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// A template that does not parse is blamed once, with its line if it has several.
func TestTemplatesThatDoNotParse(t *testing.T) {
	for text, want := range map[string]string{
		"Do {{.txt":    "prompts: unclosed action",
		"a\nb {{foo}}": `prompts: line 2: function "foo" not defined`,
	} {
		if _, err := ParseTemplate(text); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What is wrong with a CSV or an array is said where it stands, with what there is.
func TestWordsForOtherShapes(t *testing.T) {
	const array = "write one object a line, without the array around them (jq -c '.[]' FILE does that)"
	for _, c := range []struct {
		input  string
		format Format
		want   string
	}{
		{"name,text\nx,y\n", FormatCSV, "prompts: in:1: the header cannot be used: no column is named prompt; the columns are name, text: rename one, or make prompts with a template"},
		{"name\nx\n", FormatCSV, "no column is named prompt; the only column is name: rename it, or make prompts with a template"},
		{"prompt;id\na;b\n", FormatCSV, `; the only column is prompt;id: separate columns with commas`},
		{"prompt\tid\na\tb\n", FormatCSV, `: separate columns with commas`},
		{"prompt,id\na\n", FormatCSV, "in:2: 1 cell under 2 columns: fix the line or remove it"},
		{"prompt\na,b\n", FormatCSV, "in:2: 2 cells under 1 column: fix the line or remove it"},
		{`[{"prompt":"a"}]`, FormatJSONL, "in:1: an array, not an object: " + array},
		{"[\n", FormatJSONL, "in:1: not JSON: unexpected end of JSON input at byte 1: " + array},
		{"\"a\"\n", FormatJSONL, "in:1: a string, not an object: fix the line or remove it"},
	} {
		r := NewReader(strings.NewReader(c.input), Config{Name: "in", DefaultModel: "m", Format: c.format})
		if _, err := r.Next(); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
