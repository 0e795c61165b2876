package prompts

import (
	"errors"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// A template prints what the line says: objects and lists as JSON, numbers as they were written, wherever
// they are printed. A null that would be printed fails its line; one that is only asked for does not.
func TestTemplatePrintsWhatTheLineSays(t *testing.T) {
	const line = `{"o":{"b":"<&>","a":[1.50,null]},"l":["x",{"y":true}],"e":{},"n":null,"deep":{"n":null},"t":true,"s":"s","z":0}`
	for text, want := range map[string]string{
		`{{.o}}`:                                              `{"a":[1.50,null],"b":"<&>"}`,
		`{{.l}} {{.e}} {{.t}} {{.z}}`:                         `["x",{"y":true}] {} true 0`,
		`{{range .l}}{{.}};{{end}}`:                           `x;{"y":true};`,
		`{{print .l}}|{{printf "%s %d" .o 7}}`:                `["x",{"y":true}]|{"a":[1.50,null],"b":"<&>"} 7`,
		`{{with $x := .o}}{{$x}}{{end}}`:                      `{"a":[1.50,null],"b":"<&>"}`,
		`{{define "d"}}{{.l}}{{end}}{{template "d" .}}`:       `["x",{"y":true}]`,
		`{{.s | printf "%q"}}`:                                `"s"`,
		`{{if .n}}n{{else}}no n: {{.s}}{{end}}`:               `no n: s`,
		`{{with .n}}{{.}}{{else}}none{{end}}`:                 `none`,
		`{{$x := .deep}}{{$y := .n}}{{if $x.n}}{{end}}{{$x}}`: `{"n":null}`,
		`{{if .n}}{{else}}{{.e}}{{end}}{{with .n}}{{else}}{{.e}}{{end}}{{range .n}}{{else}}{{.e}}{{end}}{{with .t}}{{$.e}}{{end}}`: `{}{}{}{}`,
		`{{.n}}`:                     `the template at {{.n}}: it is null`,
		`{{.s}}{{.deep.n}}`:          `the template at {{.deep.n}}: it is null`,
		`{{index .o "none"}}`:        `the template at {{index .o "none"}}: it is null`,
		`{{range .o.a}}{{.}}{{end}}`: `the template at {{.}}: it is null`,
		`{{println}}{{printf "a"}}`:  `\na`,
		`{{print "a" .n}}`:           `the template at {{print "a" .n}}: it is null`,

		`{{define "d"}}{{.n}}{{end}}{{template "d" .}}`: `the template at {{.n}}: it is null`,
		`{{if true}}{{.n}}{{end}}`:                      `the template at {{.n}}: it is null`,
	} {
		tmpl := must.Get(ParseTemplate(text))(t)
		reqs, bad := read(t, line, Config{DefaultModel: "m", Template: tmpl})
		if len(bad) > 0 {
			if bad[0].Reason != want || !errors.Is(bad[0], ErrTemplate) || !strings.Contains(bad[0].Advice, "{{if .n}}") {
				t.Errorf("%s: %v, want %s", text, bad[0], want)
			}
			continue
		}
		quoted := strings.NewReplacer(`\"`, `"`).Replace(string(reqs[0].Body))
		if got := `{"model":"m","messages":[{"role":"user","content":"` + want + `"}]}`; quoted != got {
			t.Errorf("%s: %s, want %s", text, quoted, got)
		}
	}
}
