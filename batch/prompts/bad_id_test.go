package prompts

import (
	"slices"
	"strings"
	"testing"
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
	tmpl, err := ParseTemplate("{{.none}}")
	if err != nil {
		t.Fatal(err)
	}
	for format, text := range map[Format]string{FormatJSONL: `{"id":"a"}`, FormatCSV: "id,b\na,q"} {
		if _, bad := read(t, text, Config{DefaultModel: "m", Template: tmpl, Format: format}); len(bad) != 1 || bad[0].ID != "a" || !strings.Contains(bad[0].Reason, "none") {
			t.Errorf("%v", bad)
		}
	}
}
