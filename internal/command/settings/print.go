package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/exit"
)

// This file shows the settings of a run as a file for --config. Settings at their defaults are comments: a setting that
// is given may mean more than its value, such as --max-tokens.

// notInFile lists the flags of run that a file for --config cannot have, or that must not come back from one.
var notInFile = []string{"config", "print-config", "help", "header"}

const printHead = "# The settings of headrace %s, as a file for --config. A setting that nothing sets is a comment with its default.\n"

// WriteConfig writes the settings that hold, each with its origin, as a file for --config. The flags must be
// complete; flags holds those of the command. Values that may be secrets are left out, among them the address
// of a cluster.
func (f *Flags) WriteConfig(out io.Writer, flags *pflag.FlagSet) error {
	var b bytes.Buffer
	name := "run"
	if f.Own != nil {
		name = f.Own.Name()
	}
	fmt.Fprintf(&b, printHead, name)
	origins := map[string]string{}
	for _, s := range f.Given {
		origins[s.Name] = s.From
	}
	own := cmp.Or(f.Own, &pflag.FlagSet{})
	own.VisitAll(func(flag *pflag.Flag) { b.WriteString(f.configLine(flag, origins[flag.Name])) })
	f.All.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(notInFile, flag.Name) && own.Lookup(flag.Name) == nil && (origins[flag.Name] != "" || flags.Lookup(flag.Name) == flag) {
			b.WriteString(f.configLine(flag, origins[flag.Name]))
		}
	})
	f.writeHeaders(&b, origins["header"])
	f.writeLanes(&b)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && own.Lookup(flag.Name) == nil && f.All.Lookup(flag.Name) == nil {
			fmt.Fprintf(&b, "# --%s is set, too, and no file can set it\n", flag.Name)
		}
	})
	_, err := out.Write(b.Bytes())
	return err
}

// configLine returns the line for one flag: a setting if something sets it, else a comment.
func (f *Flags) configLine(flag *pflag.Flag, from string) string {
	value := TextOfValue(flag.Value)
	isSecret := exit.WithoutSecrets(value) != value || flag.Name == "cluster" && value != "" && value != ClusterTrial
	switch {
	case from == "":
		return fmt.Sprintf("# %s: %s\n", flag.Name, yamlText(exit.WithoutSecrets(value)))
	case isSecret:
		return fmt.Sprintf("# %s: not shown, as it may hold a secret  # %s\n", flag.Name, f.origin(flag.Name, from))
	}
	return fmt.Sprintf("%s: %s  # %s\n", flag.Name, yamlText(value), f.origin(flag.Name, from))
}

// TextOfValue returns a text from which a flag's Set reads the same value.
func TextOfValue(v pflag.Value) string {
	if withWord, is := v.(named); is {
		v = withWord.Value
	}
	if list, is := v.(pflag.SliceValue); is {
		return strings.Join(list.GetSlice(), ",")
	}
	return v.String()
}

// origin returns where a flag's value came from, with the variable or the line of the file.
func (f *Flags) origin(flag, from string) string {
	switch line := f.fileLines[flag]; {
	case from == "environment":
		return from + " " + environmentName(flag)
	case from == "file" && line > 0:
		return fmt.Sprintf("file %s:%d", f.Config, line)
	}
	return from
}

// writeHeaders writes the headers, each with its own origin: flags and the file may both set some.
func (f *Flags) writeHeaders(b *bytes.Buffer, from string) {
	if len(f.headers) == 0 {
		return
	}
	b.WriteString("headers:\n")
	for _, text := range f.headers {
		name, value, _ := strings.Cut(text, "=")
		origin := f.origin("header", from)
		if slices.Contains(f.fileHeaders, http.CanonicalHeaderKey(name)) {
			origin = "file " + f.Config
		}
		fmt.Fprintf(b, "  %s: %s  # %s\n", name, yamlText(strings.Trim(value, " ")), origin)
	}
}

// writeLanes writes what only a file can set: the settings of all lanes, and the file's lanes and pools.
func (f *Flags) writeLanes(b *bytes.Buffer) {
	if f.Lanes != nil {
		section := ""
		for _, setting := range f.Lanes.table() {
			if !f.Lanes.given(setting.name) {
				continue
			}
			name, key, within := strings.Cut(setting.name, ".")
			if within && name != section {
				fmt.Fprintf(b, "%s:\n", name)
				section = name
			}
			if within {
				name = "  " + key
			}
			fmt.Fprintf(b, "%s: %s  # file %s:%d\n", name, f.Lanes.fs.Lookup(setting.name).Value, f.Lanes.file, f.Lanes.lines[setting.name])
		}
	}
	if f.Fleet != nil {
		fmt.Fprintf(b, "# file %s:%d\n%s", f.Config, f.Fleet.Line, exit.WithoutSecrets(f.Fleet.Text))
	}
}

// plainWord matches values that YAML takes as they stand: words, numbers and lengths of time.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./%]*(?:-[A-Za-z0-9_./%]+)*$`)

// yamlWords are words that YAML takes for something else than a text.
var yamlWords = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

// yamlText writes a value as YAML on one line. Every JSON string is one of YAML, too.
func yamlText(value string) string {
	if value == "true" || value == "false" || plainWord.MatchString(value) && !slices.Contains(yamlWords, strings.ToLower(value)) {
		return value
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return `""` // no text fails to encode
	}
	return strings.TrimRight(b.String(), "\n")
}
