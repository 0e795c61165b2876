package command

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// topic returns what headrace help shows of a topic. It fits the width of a terminal.
func topic(t *testing.T, name string) string {
	t.Helper()
	code, text, errs := inWorld(t, nil, nil, "help", name)
	if code != exit.OK || errs != "" {
		t.Fatal(name, code, errs)
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 130 { // the help of a metric is a sentence of its own file
			t.Errorf("help %s: %d columns: %s", name, n, line)
		}
	}
	if _, all, _ := inWorld(t, nil, nil, "help"); !strings.Contains(all, "headrace "+name+" ") {
		t.Errorf("help %s is not listed in\n%s", name, all)
	}
	return text
}

// constants returns the values of the constants in a file of the source that have a type of that name, or, for "",
// whose value is a number.
func constants(t *testing.T, path, kind string) (values []string) {
	t.Helper()
	file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t)
	for _, decl := range file.Decls {
		of, is := decl.(*ast.GenDecl)
		if !is || of.Tok != token.CONST {
			continue
		}
		for _, spec := range of.Specs {
			one := spec.(*ast.ValueSpec)
			if name, is := one.Type.(*ast.Ident); kind != "" && (!is || name.Name != kind) {
				continue
			}
			if value, is := one.Values[0].(*ast.BasicLit); is {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					text = value.Value
				}
				values = append(values, text)
			}
		}
	}
	if len(values) < 5 {
		t.Fatalf("%s: only %q were found", path, values)
	}
	return values
}

// The topic of exit codes has a line for each.
func TestHelpOfExitCodes(t *testing.T) {
	text := topic(t, "exit-codes")
	for _, code := range constants(t, "exit/exit.go", "") {
		if !strings.Contains(text, "\n  "+code+" ") && !strings.HasPrefix(text, "  "+code+" ") {
			t.Errorf("no line for %s in\n%s", code, text)
		}
	}
}

// The topic of files names each file that a run writes.
func TestHelpOfFiles(t *testing.T) {
	text := topic(t, "files")
	const output = "results.jsonl"
	for _, name := range []string{
		output, journal.ErrorsPath(output), settings.StatePath(output), timeline.Path(output), output + journal.LockSuffix, output + journal.BackupSuffix,
	} {
		if !strings.Contains(text, "\n  "+name+" ") {
			t.Errorf("no line for %s in\n%s", name, text)
		}
	}
	if !strings.Contains(text, settings.StdoutErrors) {
		t.Errorf("%s is missing", settings.StdoutErrors)
	}
}

// The topic of failures has a row for each kind.
func TestHelpOfFailures(t *testing.T) {
	text := topic(t, "failures")
	kinds := 0
	for k := provider.Kind(1); k.String() != provider.Unknown.String(); k++ {
		if kinds++; !strings.Contains(text, "\n  "+k.String()+" ") || failureMeans[k] == "" {
			t.Errorf("no row for %s in\n%s", k, text)
		}
	}
	if kinds != len(failureMeans)-1 {
		t.Errorf("%d kinds, and %d rows", kinds, len(failureMeans)-1)
	}
}

// The topic of events has each event of the schema, and each code of a notice.
func TestHelpOfEvents(t *testing.T) {
	text := topic(t, "events")
	schema := string(must.Get(os.ReadFile("../../docs/progress.schema.json"))(t))
	events := regexp.MustCompile(`"event": \{\s*"const": "([a-z_]+)"`).FindAllStringSubmatch(schema, -1)
	if len(events) < 6 {
		t.Fatalf("only %d events were found", len(events))
	}
	words := constants(t, "event/event.go", "Code")
	pattern := regexp.MustCompile(`"code": \{\s*"type": "string",\s*"pattern": "([^"]+)"`).FindStringSubmatch(schema)
	for _, code := range words {
		if !regexp.MustCompile(pattern[1]).MatchString(code) {
			t.Errorf("the schema's pattern %s refuses the code %s", pattern[1], code)
		}
	}
	for _, one := range events {
		words = append(words, one[1])
	}
	for _, word := range words {
		if !strings.Contains(text, "\n  "+word+" ") {
			t.Errorf("no line for %s in\n%s", word, text)
		}
	}
}

// The topic of metrics has each metric with its labels.
func TestHelpOfMetrics(t *testing.T) {
	text := topic(t, "metrics")
	for _, m := range metrics.Names() {
		if !strings.Contains(text, "\n  "+m.Name+" ("+string(m.Kind)+")") || !strings.Contains(text, strings.Join(m.Labels, ", ")) {
			t.Errorf("no %s in\n%s", m.Name, text)
		}
	}
}
