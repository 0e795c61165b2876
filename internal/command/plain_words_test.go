package command

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// notPlain matches what no text for people says: words of another language's grammar, each
// with a plain word in its place.
var notPlain = map[string]*regexp.Regexp{
	"anyone, the caller, the server":  regexp.MustCompile(`(?i)\bwho(?:so)?ever\b`),
	"is set, is given, is asked":      regexp.MustCompile(`\b(?:is|are|was|were|been|that you) told\b`),
	"next to, with, compared with":    regexp.MustCompile(`\bbeside\b`),
	"recently":                        regexp.MustCompile(`\bof late\b`),
	"is invalid: want a, b or c":      regexp.MustCompile(`\b(?:is|are) none of\b`),
	"depends on":                      regexp.MustCompile(`\bhangs? on\b`),
	"where":                           regexp.MustCompile(`\bwhereto\b`),
	"again":                           regexp.MustCompile(`\banew\b`),
	"check":                           regexp.MustCompile(`\bsees? to\b`),
	"continue, resume":                regexp.MustCompile(`\b(?:to go on,|go(?:es|ing)? on with\b|gone on with\b)`),
	"is in, is part of, appears":      regexp.MustCompile(`\bstands? (?:in|there|beside|for)\b`),
	"another process, other clients":  regexp.MustCompile(`\bsomebody else\b`),
	"is not a":                        regexp.MustCompile(`(?:^|\b(?:it|this|that) |%[sqvd] )is no (?:[a-km-z]|l[^o])`),
	"your own":                        regexp.MustCompile(`\bone's own\b`),
	"no longer":                       regexp.MustCompile(`\b(?:is|are) no more\b|\bany more\b`),
	"search, find":                    regexp.MustCompile(`\b(?:feel|felt|feeling) for\b`),
	"provider, server (as a heading)": regexp.MustCompile(`\bwhom\b`),
}

// textOf gives the string literals of a source file that may be sentences, by line.
func textOf(t *testing.T, path string) map[int]string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[int]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if _, is := n.(*ast.ImportSpec); is {
			return false
		}
		if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			texts[set.Position(lit.Pos()).Line] += text + "\n"
		}
		return true
	})
	return texts
}

// Help, errors and notices of all packages, the cluster's included, are in plain English: their
// texts have no word of notPlain.
func TestTextsArePlain(t *testing.T) {
	root, files := filepath.Join("..", ".."), 0
	for _, folder := range []string{"cmd", "internal", "batch", "observe", "coordinator", "limiter", "provider", "cluster"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "tests" || d.Name() == "sim" || strings.HasSuffix(d.Name(), "test")):
				return filepath.SkipDir
			case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files++
			for line, text := range textOf(t, path) {
				for plain, found := range notPlain {
					if bad := found.FindString(text); bad != "" {
						t.Errorf("%s:%d: %q in %q: say: %s", path, line, bad, text, plain)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 500 {
		t.Errorf("only %d files were read", files)
	}
}

// Each of the words is found where it is.
func TestWhatIsNotPlainIsFound(t *testing.T) {
	for _, text := range []string{
		"whoever reads it", "the limit that was told", "a prompt beside a body", "few of late", "%q is none of may and never", "it hangs on that",
		"say whereto", "begin anew", "see to the disk", "the rest is left; to go on, run:", "goes on with it", "it stands there twice",
		"somebody else owns it", "%q is no number", "it is no list", "a server of one's own", "the tier is no more", "nothing is sent any more",
		"feeling for the limit", "whom to call",
	} {
		n := 0
		for _, found := range notPlain {
			if found.MatchString(text) {
				n++
			}
		}
		if n == 0 {
			t.Errorf("%q passes", text)
		}
	}
	for _, text := range []string{"there is no such file: check its name", "no longer", "calls go on", "it is unknown"} {
		for _, found := range notPlain {
			if bad := found.FindString(text); bad != "" {
				t.Errorf("%q in %q", bad, text)
			}
		}
	}
}
