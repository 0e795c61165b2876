package command

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
)

// offered returns the words that the shell gets for what stands on a command line so far.
func offered(t *testing.T, line ...string) (words []string) {
	t.Helper()
	_, out, _ := inWorld(t, nil, nil, append([]string{"__complete"}, line...)...)
	for line := range strings.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if word != "" && !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	return words
}

// unknown matches the complaint about a value that a flag does not take, and the values that it does take.
var unknown = regexp.MustCompile(`--([a-z-]+): "no-such-value" is not known: use (.+)`)

// The shell offers exactly the values that a flag takes, for each flag of each command that takes only some.
func TestShellsCompleteEachValue(t *testing.T) {
	in := writeLines(t, `{"prompt":"a","model":"m"}`+"\n")
	out := filepath.Join(filepath.Dir(in), "out.jsonl")
	if code, _, errs := inWorld(t, nil, nil, "run", in, "-o", out, "--provider", "sim"); code != 0 {
		t.Fatal(errs)
	}
	for command, args := range map[string][]string{
		"run":    {in, "-o", out, "--rpm", "-1"}, // so that nothing is run if the value is taken
		"plan":   {in, "--rpm", "-1"},
		"doctor": {"--offline", "--rpm", "-1"},
		"serve":  {"--max-wait", "0s"},
		"export": {out},
		"status": {out},
		"sim":    {"--sigma", "-1"},
	} {
		cmd, _, err := newRoot(&world.World{}).Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); kind == "FILE" || kind == "bool" || kind == "PATH" && f.Name != "endpoint" || strings.Contains("cluster socket addr", f.Name) {
				return
			}
			_, said, complaints := inWorld(t, nil, map[string]string{settings.DefaultKeyEnv: "k"}, append([]string{command, "--" + f.Name, "no-such-value"}, args...)...)
			match := unknown.FindStringSubmatch(said + complaints)
			if match == nil || match[1] != f.Name {
				return
			}
			found++
			match[2], _, _ = strings.Cut(match[2], ", or ")
			want := strings.Split(strings.ReplaceAll(match[2], " or ", ", "), ", ")
			got := offered(t, command, "--"+f.Name, "")
			if slices.Sort(want); f.Name == "provider" {
				return // its complaint names the page that lists them
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("headrace %s --%s takes %q, and the shell offers %q", command, f.Name, want, got)
			}
		})
		if least := map[string]int{"run": 15, "plan": 6, "doctor": 15, "serve": 5, "export": 1, "status": 1, "sim": 3}[command]; found < least {
			t.Errorf("headrace %s: %d flags with a list of values were found, want %d", command, found, least)
		}
	}
}

// The shell offers commands, topics and providers, and no files where a number stands.
func TestShellsCompleteNames(t *testing.T) {
	for _, c := range []struct {
		line []string
		want string
	}{
		{[]string{"do"}, "doctor"},
		{[]string{"help", "net"}, "network"},
		{[]string{"help", "exit"}, "exit-codes"},
		{[]string{"run", "--provider", "anth"}, "anthropic"},
		{[]string{"run", "--print"}, "--print-config"},
	} {
		if got := offered(t, c.line...); !slices.Contains(got, c.want) {
			t.Errorf("%q: the shell offers %q, without %s", c.line, got, c.want)
		}
	}
	if _, out, _ := inWorld(t, nil, nil, "__complete", "run", "--rpm", ""); !strings.Contains(out, ":4") {
		t.Errorf("files are offered for --rpm: %q", out) // 4 is cobra's word for no files
	}
	if _, out, _ := inWorld(t, nil, nil, "__complete", "run", "--config", ""); !strings.Contains(out, "yaml\nyml\n:8") {
		t.Errorf("other files than YAML are offered for --config: %q", out) // 8 is cobra's word for endings
	}
}

// There is a script for each shell, which asks the command itself.
func TestThereIsAScriptForEachShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, errs := inWorld(t, nil, nil, "completion", shell); code != 0 || errs != "" || !strings.Contains(out, "__complete") {
			t.Errorf("%s: exit code %d, %d bytes, %s", shell, code, len(out), errs)
		}
	}
}
