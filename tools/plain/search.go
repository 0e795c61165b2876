package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A finding is a word that stands where it should not.
type finding struct {
	file    string
	line    int
	word    string
	instead string
}

// A word is one that is looked for, and the plain one that says the same.
type word struct {
	pattern *regexp.Regexp
	instead string
}

// words are looked for everywhere. They are words of another language's grammar: a native
// reader understands them only at the second reading.
var words = []word{
	{regexp.MustCompile(`(?i)\bwho(?:so)?ever\b`), "the name of the thing: the caller, the server"},
	{regexp.MustCompile(`\b(?:is|are|was|were|been|that you) told\b`), "receives, is set, the caller passes"},
	{regexp.MustCompile(`\bbeside\b`), "next to, in flight with, besides"},
	{regexp.MustCompile(`\bof late\b`), "recently"},
	{regexp.MustCompile(`\b(?:is|are) none of (?:[a-su-z\d%]|these\b)`), "is invalid: want a, b or c"},
	{regexp.MustCompile(`\bhangs? on\b`), "depends on"},
	{regexp.MustCompile(`\bwhereto\b`), "where"},
	{regexp.MustCompile(`\bnought\b`), "zero"},
	{regexp.MustCompile(`\bhas it that\b`), "says that"},
	{regexp.MustCompile(`\bwhat (?:is|was) to be\b`), "the name of the thing"},
}

// textWords are looked for in what the command prints besides: help, errors, notices.
var textWords = []word{
	{regexp.MustCompile(`\banew\b`), "again"},
	{regexp.MustCompile(`\bsees? to\b`), "check"},
	{regexp.MustCompile(`\b(?:to go on,|go(?:es|ing)? on with\b|gone on with\b)`), "continue, resume"},
	{regexp.MustCompile(`\bstands? (?:in|there|beside|for)\b`), "is in, is part of, appears"},
	{regexp.MustCompile(`\bsomebody else\b`), "another process, other clients"},
	{regexp.MustCompile(`(?:^|\b(?:it|this|that) |%[sqvd] )is no (?:[a-km-z]|l[^o])`), "is not a"},
	{regexp.MustCompile(`\bone's own\b`), "your own"},
	{regexp.MustCompile(`\b(?:is|are) no more\b|\bany more\b`), "no longer"},
	{regexp.MustCompile(`\b(?:feel|felt|feeling) for\b`), "search, find"},
	{regexp.MustCompile(`\bwhom\b`), "provider, server (as a heading)"},
}

// printing are the folders, under the root, whose strings people read. Tests and simulators
// speak to nobody.
var printing = regexp.MustCompile(`^(?:cmd|internal|batch|observe|coordinator|limiter|provider|cluster)/`)

// silent matches the files in printing folders whose strings nobody reads.
var silent = regexp.MustCompile(`_test\.go$|(?:^|/)(?:tests|sim|[a-z\d]*test)/`)

// quoted matches a name in backquotes or a link in brackets.
var quoted = regexp.MustCompile("`[^`]*`|\\[[^\\]]*\\]")

// skipped are folders that hold nothing of the project's own.
var skipped = map[string]bool{"testdata": true, "node_modules": true, "plain": true}

// search reads the Go files and the pages under root.
func search(root string) (found []finding, files int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && (skipped[d.Name()] || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
				return filepath.SkipDir
			}
			return nil
		}
		var lines, texts map[int]string
		switch filepath.Ext(path) {
		case ".go":
			lines, texts, err = goFile(path)
		case ".md":
			lines, err = prose(path)
		default:
			return nil
		}
		if err != nil {
			return err
		}
		files++
		found = append(found, check(path, lines, words)...)
		within, err := filepath.Rel(root, path)
		if within = filepath.ToSlash(within); err == nil && printing.MatchString(within) && !silent.MatchString(within) {
			found = append(found, check(path, texts, slices.Concat(words, textWords))...)
		}
		return err
	})
	return found, files, err
}

// check finds the words in one file's lines, in their order.
func check(path string, lines map[int]string, words []word) (found []finding) {
	for _, n := range slices.Sorted(maps.Keys(lines)) {
		for _, w := range words {
			if bad := w.pattern.FindString(lines[n]); bad != "" {
				found = append(found, finding{path, n, bad, w.instead})
			}
		}
	}
	return found
}

// goFile returns a Go file's comments, without drawings and names in quotes, and its strings that
// may be sentences, both by line. A generated file has neither.
func goFile(path string) (comments, texts map[int]string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, fmt.Errorf("comments: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil, nil, nil
	}
	comments, texts = map[int]string{}, map[int]string{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			at := set.Position(c.Pos()).Line
			for k, text := range strings.Split(c.Text, "\n") {
				text = strings.TrimPrefix(text, "//")
				if !strings.HasPrefix(text, "\t") && !strings.HasPrefix(text, "  ") && !strings.HasPrefix(text, "go:") {
					comments[at+k] = quoted.ReplaceAllString(text, "")
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if _, is := n.(*ast.ImportSpec); is {
			return false
		}
		if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				texts[set.Position(lit.Pos()).Line] += text + "\n"
			}
		}
		return true
	})
	return comments, texts, nil
}

// prose gives the lines of a page, without blocks of code.
func prose(path string) (map[int]string, error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	lines, inside := map[int]string{}, false
	for k, text := range strings.Split(string(page), "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(text), "```"):
			inside = !inside
		case inside, strings.HasPrefix(text, "    "):
		default:
			lines[k+1] = quoted.ReplaceAllString(text, "")
		}
	}
	return lines, nil
}
