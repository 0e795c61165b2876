package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/disk"
)

// environmentPrefix begins the name of each flag's variable.
const environmentPrefix = "HEADRACE_"

func environmentName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that were not given from their variables. An empty variable
// counts as unset.
func fromEnvironment(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	var faults []error
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := env(environmentName(f.Name))
		if f.Changed || !ok || value == "" || f.Name == "help" {
			return
		}
		if f.Name == "header" {
			value = headersInLines(value)
		}
		if err := fs.Set(f.Name, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is not a %s: correct or unset it", environmentName(f.Name), value, kindOfFlag(f)))
		}
	})
	return usage(faults...)
}

// maxConfig is the greatest length of a --config file, in bytes: every flag with a page of
// text for a template, many times over.
const maxConfig = 1 << 20

// fromFile sets the flags that neither the command line nor the environment gave, from the
// file of --config. Such a file holds flags and their values: nothing in it is executed,
// expanded or included.
func (f *runFlags) fromFile() error {
	if f.config == "" {
		return nil
	}
	text, err := readConfig(f.config)
	if err != nil {
		return err
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return configSyntax(f.config, err)
	}
	f.lanes = newLaneSettings(f.config)
	c := configFile{name: f.config, flags: f.all, lanes: f.lanes, headers: &f.headers}
	for i, doc := range file.Docs {
		if i > 0 {
			c.complain(doc.Body, "a second YAML document begins", "keep one, without a --- line")
			break
		}
		c.settings(doc.Body)
	}
	f.configBaseURL = c.baseURL
	return usage(c.faults...)
}

func readConfig(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, configUnread(path, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	switch {
	case err != nil:
		return nil, configUnread(path, err)
	case len(text) > maxConfig:
		return nil, refuse("--config: %s is longer than %d bytes: name a YAML file of flags", path, maxConfig)
	}
	return text, nil
}

// configUnread says why a config file cannot be read.
func configUnread(path string, err error) error {
	switch err = disk.Bare(err); {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("--config: %s: there is no such file: check the name", path)
	case errors.Is(err, syscall.EISDIR):
		return refuse("--config: %s: it is a directory: name a YAML file of flags", path)
	}
	return refuse("--config: %s: %v: check the permissions", path, err)
}

// configSyntax names the line. The parser's own text would repeat the lines around it, and
// any secret in them.
func configSyntax(name string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return refuse("%s:%d: not YAML: %s: write one flag a line, as in \"rpm: 600\"", name, at.GetToken().Position.Line, oneLine(at.GetMessage()))
	}
	return refuse("%s: not YAML: write one flag a line, as in \"rpm: 600\"", name)
}

// configFile is a --config file while it sets the flags.
type configFile struct {
	name    string
	flags   *pflag.FlagSet
	lanes   *laneSettings
	headers *headerTexts
	faults  []error
	baseURL bool // it sets the base URL

	ownHeaders []string // the headers that the file has set
}

func (c *configFile) complain(at ast.Node, what, advice string) {
	line := 1
	if at != nil && at.GetToken() != nil {
		line = at.GetToken().Position.Line
	}
	c.faults = append(c.faults, fmt.Errorf("%s:%d: %s: %s", c.name, line, what, advice))
}

func (c *configFile) settings(body ast.Node) {
	switch body := body.(type) {
	case nil:
	case *ast.CommentGroupNode, *ast.NullNode:
	case *ast.MappingValueNode:
		c.setting(body)
	case *ast.MappingNode:
		for _, one := range body.Values {
			c.setting(one)
		}
	default:
		c.complain(body, "not a flag and its value", `write one flag a line, as in "rpm: 600"`)
	}
}

func (c *configFile) setting(s *ast.MappingValueNode) {
	name := s.Key.GetToken().Value
	f := c.flags.Lookup(name)
	if name == "headers" {
		c.headersSection(s)
		return
	}
	if f == nil && c.lane(s) {
		return
	}
	switch {
	case isKeyFlag(name):
		c.complain(s.Key, "keys are not allowed in this file", "put it into a variable, and name the variable with api-key-env")
		return
	case f == nil || name == "help" || name == "config":
		c.complain(s.Key, fmt.Sprintf("unknown setting %q", clipped(name)), didYouMean(nearest(name, c.names()))+"settings are the flags of headrace run, without their dashes")
		return
	}
	value, ok := plainValue(s.Value)
	if !ok {
		c.complain(s.Key, name+" needs a single value", fmt.Sprintf("write it as in \"%s: …\"", name))
		return
	}
	if !f.Changed {
		c.set(s, f, value)
	}
}

// names lists the names of all settings.
func (c *configFile) names() (names []string) {
	c.flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	names = append(names, "headers")
	for _, one := range c.lanes.table() {
		section, _, _ := strings.Cut(one.name, ".")
		names = append(names, section)
	}
	return names
}

func (c *configFile) set(s *ast.MappingValueNode, f *pflag.Flag, value string) {
	if err := c.flags.Set(f.Name, value); err != nil {
		c.complain(s.Key, fmt.Sprintf("%s: %q is not a %s", f.Name, clipped(value), kindOfFlag(f)), "correct or remove it")
	}
	c.baseURL = c.baseURL || f.Name == "base-url"
}

// plainValue returns a scalar as it is written. Anchors, aliases, tags, lists and maps have
// no meaning for a flag.
func plainValue(v ast.Node) (string, bool) {
	switch v := v.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.GetToken().Value, true
	}
	return "", false
}

// clipped shortens a text of the file to what helps to find it.
func clipped(s string) string {
	const shown = 40
	if r := []rune(s); len(r) > shown {
		return string(r[:shown]) + "…"
	}
	return s
}
