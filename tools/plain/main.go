package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, files, err := search(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Printf("%s:%d: %q: say %s\n", f.file, f.line, f.word, f.instead)
	}
	if len(found) > 0 {
		fmt.Fprintf(os.Stderr, "plain: %d lines in %d files are not plain English\n", len(found), files)
		os.Exit(1)
	}
}
