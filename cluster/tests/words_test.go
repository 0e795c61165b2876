package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the page and the examples tell people to type is there: each command, and each of its flags.
func TestPageAndExamplesNameWhatIsThere(t *testing.T) {
	checked := 0
	for _, file := range []string{
		"../../docs/cluster.md", "../README.md", "../../examples/cluster/laptop.sh", "../../examples/cluster/compose.yaml",
		"../../examples/cluster/kubernetes/hub.yaml", "../../examples/cluster/kubernetes/worker.yaml", "../../examples/cluster/kubernetes/submit.yaml",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, flags := range typed(string(text)) {
			checked++
			help := helpOf(t, name)
			for _, flag := range flags {
				if !regexp.MustCompile(`(?m)` + regexp.QuoteMeta(flag) + `\b`).MatchString(help) {
					t.Errorf("%s: headrace %s has no %s", filepath.Base(file), name, flag)
				}
			}
		}
	}
	if checked < 12 {
		t.Errorf("%d commands were found", checked)
	}
}

// subcommands are those that have commands of their own.
var subcommands = []string{"jobs", "limits", "cluster"}

// known are the commands that are looked for.
var known = []string{"hub", "worker", "submit", "run", "sim", "jobs", "limits", "cluster"}

var (
	// A command begins behind the name of the program, or a manifest's list of arguments, and ends
	// with its line; a line that ends in a backslash goes on.
	commandLine = regexp.MustCompile(`(?:headrace"?|args: \[|command: \[|entrypoint: \[sh, -c, '.*exec headrace) ?([a-z]+)((?:\\\n|[^\n` + "`" + `])*)`)
	flagWord    = regexp.MustCompile(`(?:^|[\s\[,])(--?[a-z][a-z-]*)`)
	listed      = regexp.MustCompile(`(?m)^ +- ([a-z]+)\n((?: +(?:- --.*|#.*)\n)+)`)
)

// typed are the commands in a text, and the flags that they are given.
func typed(text string) map[string][]string {
	all := map[string][]string{}
	take := func(name, rest string) {
		if !slices.Contains(known, name) {
			return
		}
		words := strings.Fields(rest)
		if slices.Contains(subcommands, name) && len(words) > 0 && regexp.MustCompile(`^[a-z-]+$`).MatchString(words[0]) {
			name += " " + words[0]
		}
		rest, _, _ = strings.Cut(rest, " #")
		if _, there := all[name]; !there {
			all[name] = nil
		}
		for _, flag := range flagWord.FindAllStringSubmatch(rest, -1) {
			all[name] = append(all[name], flag[1])
		}
	}
	for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
		take(m[1], m[2])
	}
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		take(m[1], m[2])
	}
	return all
}

func TestTypedFindsCommands(t *testing.T) {
	got := typed("\"$headrace\" hub --listen x \\\n  --dir y 2>z &\n`headrace jobs watch JOB --json` and headrace is a word\n          args: [worker, --keeper=never]\n            - submit\n            - --weight=1\n            - --store=x\n")
	want := map[string]string{"hub": "--listen --dir", "jobs watch": "--json", "worker": "--keeper", "submit": "--weight --store"}
	for name, flags := range want {
		if strings.Join(got[name], " ") != flags {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
}

func helpOf(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command(command(t), append(strings.Fields(name), "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("headrace %s --help: %v: %s", name, err, out)
	}
	return string(out)
}
