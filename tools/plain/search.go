package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A finding is a word that stands where it should not.
type finding struct {
	file    string
	line    int
	word    string
	instead string
}

// words lists what is looked for, each with what to say instead. They are words of another
// language's grammar: a native reader understands them only at the second reading.
var words = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bwho(?:so)?ever\b`), "the name of the thing: the caller, the server"},
	{regexp.MustCompile(`\b(?:is|are|was|were|been) told\b`), "receives, is set, the caller passes"},
	{regexp.MustCompile(`\bbeside\b`), "next to, in flight with, besides"},
	{regexp.MustCompile(`\bof late\b`), "recently"},
	{regexp.MustCompile(`\b(?:is|are) none of [a-su-z\d]`), "is invalid, is not one of"},
	{regexp.MustCompile(`\bhangs? on\b`), "depends on"},
	{regexp.MustCompile(`\bwhereto\b`), "where"},
	{regexp.MustCompile(`\bnought\b`), "zero"},
	{regexp.MustCompile(`\bhas it that\b`), "says that"},
	{regexp.MustCompile(`\bwhat (?:is|was) to be\b`), "the name of the thing"},
}

// quoted matches a name in backquotes or a link in brackets.
var quoted = regexp.MustCompile("`[^`]*`|\\[[^\\]]*\\]")

// skipped are folders that hold nothing of the project's own.
var skipped = map[string]bool{"testdata": true, "node_modules": true, "plain": true}

// search reads the Go files and the pages under root.
func search(root string) (found []finding, files int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path != root && (skipped[d.Name()] || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
				return filepath.SkipDir
			}
			return nil
		}
		var lines map[int]string
		switch filepath.Ext(path) {
		case ".go":
			lines, err = comments(path)
		case ".md":
			lines, err = prose(path)
		default:
			return nil
		}
		if err != nil {
			return err
		}
		files++
		found = append(found, look(path, lines)...)
		return nil
	})
	return found, files, err
}

// look finds the words of one file's lines, in their order.
func look(path string, lines map[int]string) (found []finding) {
	last := 0
	for n := range lines {
		last = max(last, n)
	}
	for n := 1; n <= last; n++ {
		text := quoted.ReplaceAllString(lines[n], "")
		for _, w := range words {
			if word := w.pattern.FindString(text); word != "" {
				found = append(found, finding{path, n, word, w.instead})
			}
		}
	}
	return found
}

// comments gives the lines of a Go file's comments, without drawings and generated files.
func comments(path string) (map[int]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("comments: %w", err)
	}
	lines := map[int]string{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			at := set.Position(c.Pos()).Line
			for k, text := range strings.Split(c.Text, "\n") {
				text = strings.TrimPrefix(text, "//")
				switch {
				case strings.Contains(text, "Code generated"):
					return nil, nil
				case strings.HasPrefix(text, "\t"), strings.HasPrefix(text, "  "), strings.HasPrefix(text, "go:"):
				default:
					lines[at+k] = text
				}
			}
		}
	}
	return lines, nil
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
			lines[k+1] = text
		}
	}
	return lines, nil
}
