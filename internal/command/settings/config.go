package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/yamlfile"
)

// EnvironmentPrefix begins the name of each flag's variable.
const EnvironmentPrefix = "HEADRACE_"

func environmentName(flag string) string {
	return EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
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
			faults = append(faults, fmt.Errorf("%s: %q is not a %s: correct or unset it", environmentName(f.Name), value, KindOfFlag(f)))
		}
	})
	return Usage(faults...)
}

// fileOfFlags is the form of the file of --config.
var fileOfFlags = yamlfile.Form{Flag: "--config", Is: "a YAML file of flags", Entry: "a flag and its value", Write: `write one flag a line, as in "rpm: 600"`}

// fromFile sets the flags that neither the command line nor the environment gave, from the
// file of --config. Such a file holds flags and their values: nothing in it is executed,
// expanded or included.
func (f *Flags) fromFile() error {
	if f.lanesText != "" {
		return f.fromJob()
	}
	if f.Config == "" {
		return nil
	}
	file, err := fileOfFlags.Read(f.Config)
	if err != nil {
		return err
	}
	f.Lanes = newLaneSettings(f.Config)
	c := configFile{File: file, flags: f.All, own: f.Own, lanes: f.Lanes, headers: &f.headers, lines: map[string]int{}}
	for _, one := range c.Entries() {
		c.setting(one)
	}
	f.ConfigBaseURL = c.baseURL
	f.Fleet, f.fileLines, f.fileHeaders = c.fleet(c.laneNodes, c.poolNodes), c.lines, c.ownHeaders
	return Usage(c.Faults...)
}

// configFile is a --config file while it sets the flags.
type configFile struct {
	*yamlfile.File
	flags   *pflag.FlagSet
	own     *pflag.FlagSet // those of the command itself; nil: it has none
	lanes   *laneSettings
	headers *headerTexts
	baseURL bool // it sets the base URL

	ownHeaders []string       // the headers that the file has set
	lines      map[string]int // of its flags; nil: nobody asks

	laneNodes, poolNodes *ast.MappingValueNode // lanes and pools, which are read once all flags are known
}

// setting takes one setting: headers, those of lanes, or a flag. A flag that was given otherwise
// keeps its value. A key is refused: it belongs into a variable.
func (c *configFile) setting(s *ast.MappingValueNode) {
	name := s.Key.GetToken().Value
	f := c.flag(name)
	if name == "headers" {
		c.headersSection(s)
		return
	}
	if f == nil && (c.keepForFleet(s) || c.lane(s)) {
		return
	}
	switch {
	case f == nil && slices.Contains(OfServe, name):
		return // it is of headrace serve alone: one file serves all commands
	case IsKeyFlag(name):
		c.Complain(s.Key, "keys are not allowed in this file", "put it into a variable, and name the variable with api-key-env")
		return
	case f == nil || slices.Contains(notInFile, name) && name != "header":
		c.Complain(s.Key, fmt.Sprintf("unknown setting %q", Clipped(name)), DidYouMean(Nearest(name, c.names()))+"settings are the flags of headrace run, without their dashes")
		return
	}
	value, ok := yamlfile.Plain(s.Value)
	if !ok {
		c.Complain(s.Key, name+" needs a single value", fmt.Sprintf("write it as in \"%s: …\"", name))
		return
	}
	if !f.Changed {
		c.set(s, f, value)
	}
}

// flag returns the flag of a name; nil: there is none. One of the command itself may have the name of one of run.
func (c *configFile) flag(name string) *pflag.Flag {
	if c.own != nil {
		if f := c.own.Lookup(name); f != nil {
			return f
		}
	}
	return c.flags.Lookup(name)
}

// keepForFleet keeps the lanes and the pools for later.
func (c *configFile) keepForFleet(s *ast.MappingValueNode) bool {
	switch s.Key.GetToken().Value {
	case "lanes":
		c.laneNodes = s
	case "pools":
		c.poolNodes = s
	default:
		return false
	}
	return true
}

// names lists the names of all settings.
func (c *configFile) names() (names []string) {
	names = slices.Clone(OfServe)
	c.flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notInFile, f.Name) || f.Name == "header" {
			names = append(names, f.Name)
		}
	})
	names = append(names, "headers", "lanes", "pools")
	for _, one := range c.lanes.table() {
		section, _, _ := strings.Cut(one.name, ".")
		names = append(names, section)
	}
	return names
}

// OfServe are the flags of headrace serve that headrace run does not have.
var OfServe = []string{
	"addr", "socket", "clients", "token-file", "open", "state", "tls-cert", "tls-key", "host", "allow-origin", "max-wait", "max-waiting", "max-body",
	"commit-after", "inject-usage", "on-disconnect", "drain", "drain-waiting",
}

func (c *configFile) set(s *ast.MappingValueNode, f *pflag.Flag, value string) {
	of := c.flags
	if c.own != nil && c.own.Lookup(f.Name) == f {
		of = c.own
	}
	if err := of.Set(f.Name, value); err != nil {
		c.Complain(s.Key, fmt.Sprintf("%s: %q is not a %s", f.Name, Clipped(value), KindOfFlag(f)), "correct or remove it")
	}
	c.baseURL = c.baseURL || f.Name == "base-url"
	if c.lines != nil {
		c.lines[f.Name] = s.Key.GetToken().Position.Line
	}
}

// Clipped shortens a text of the file to what helps to find it.
func Clipped(s string) string { return yamlfile.Clipped(s) }

// origins maps the name of each flag that was set to the source of its value.
type origins map[string]string

// note records that all flags set since its last call have their values from there.
func (o origins) note(fs *pflag.FlagSet, from string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed && o[f.Name] == "" {
			o[f.Name] = from
		}
	})
}

// isHidden names the flags whose values are never shown: parts of prompts, headers, and an
// address that may contain a token.
var isHidden = map[string]bool{"system": true, "template": true, "param": true, "header": true, "cluster": true}

// settings lists the flags that were set, for readers who want to know how a run was made.
// Nothing in them looks like a key.
func (o origins) settings(fs *pflag.FlagSet) []event.Setting {
	list := []event.Setting{}
	fs.VisitAll(func(f *pflag.Flag) {
		if from := o[f.Name]; from != "" {
			s := event.Setting{Name: f.Name, From: from}
			if !isHidden[f.Name] {
				value := exit.WithoutSecrets(f.Value.String())
				s.Value = &value
			}
			list = append(list, s)
		}
	})
	return list
}

// Shown lists given settings by their names, for readers who want to know how a job was made. Values that may be parts of
// a prompt are left out, as in a report of a run.
func Shown(given map[string]string, from string) (list []event.Setting) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		s := event.Setting{Name: name, From: from}
		if !isHidden[name] {
			value := exit.WithoutSecrets(given[name])
			s.Value = &value
		}
		list = append(list, s)
	}
	return list
}

// settings lists the settings of the file that have no flag.
func (s *laneSettings) settings() (list []event.Setting) {
	if s == nil {
		return nil
	}
	for _, one := range s.table() {
		if s.given(one.name) {
			value := s.shown(one.name)
			list = append(list, event.Setting{Name: one.name, Value: &value, From: "file"})
		}
	}
	return list
}

// lane takes a section of the file, or a setting of all lanes outside any section.
func (c *configFile) lane(s *ast.MappingValueNode) (taken bool) {
	name := s.Key.GetToken().Value
	keys := c.lanes.keys(name)
	if len(keys) == 0 {
		if c.lanes.fs.Lookup(name) == nil || strings.Contains(name, ".") {
			return false
		}
		c.laneSetting(s, name)
		return true
	}
	c.lanes.lines[name] = s.Key.GetToken().Position.Line
	c.section(s, name, keys)
	return true
}

// section takes the settings of one section.
func (c *configFile) section(s *ast.MappingValueNode, name string, keys []string) {
	body := yamlfile.Section(s)
	if len(body) == 0 {
		c.Complain(s.Key, name+" has no settings", fmt.Sprintf("write them below it, indented, as in \"%s: …\": there are %s", keys[0], strings.Join(keys, ", ")))
	}
	for _, one := range body {
		key := one.Key.GetToken().Value
		if !slices.Contains(keys, key) {
			c.Complain(one.Key, fmt.Sprintf("%s has no setting %q", name, Clipped(key)), "there are "+strings.Join(keys, ", "))
			continue
		}
		c.laneSetting(one, name+"."+key)
	}
}

// laneSetting sets a lane setting by its full name, and complains if the value is out of its
// bounds. It notes the line, which also says that the setting was given.
func (c *configFile) laneSetting(s *ast.MappingValueNode, name string) {
	value, ok := yamlfile.Plain(s.Value)
	if !ok {
		c.Complain(s.Key, name+" needs a single value", "write a number or a length of time")
		return
	}
	c.lanes.lines[name] = s.Key.GetToken().Position.Line
	if err := c.lanes.fs.Set(name, value); err != nil {
		c.Complain(s.Key, fmt.Sprintf("%s: %q is not a %s", name, Clipped(value), KindOfFlag(c.lanes.fs.Lookup(name))), "correct or remove it")
		return
	}
	for _, one := range c.lanes.table() {
		if x := one.value(); one.name == name && !(x >= one.least && x <= one.most) { // NaN too
			c.Complain(s.Key, fmt.Sprintf("%s: %s is out of bounds", name, Clipped(value)), "it may be "+one.allowed())
		}
	}
}

// check finds settings that contradict each other, or the law of the run.
func (s *laneSettings) check(law string) (faults []error) {
	if s == nil {
		return nil
	}
	for _, part := range []string{"ramp", "cooldown", "rate.min", "rate.max", "rate.increase", "rate.decrease"} {
		if s.given(part) && law != LawPlain {
			faults = append(faults, s.fault(part, fmt.Sprintf("it needs \"law: plain\", and the law is %s: add that, or remove it", law)))
		}
	}
	for _, part := range []string{"rate.initial", "error-window"} {
		if s.given(part) && law == LawNone {
			faults = append(faults, s.fault(part, "the law is none, which limits nothing: choose another law, or remove it"))
		}
	}
	for _, pair := range [][2]string{
		{"rate.min", "rate.initial"},
		{"rate.min", "rate.max"},
		{"rate.initial", "rate.max"},
		{"cooldown.base", "cooldown.max"},
		{"error-window.low", "error-window.high"},
		{"breaker.open", "breaker.max-open"},
		{"backoff.base", "backoff.max"},
	} {
		faults = append(faults, s.inOrder(pair[0], pair[1]))
	}
	return faults
}

// inOrder finds bounds whose lower one exceeds the higher. It complains about one that the
// file sets.
func (s *laneSettings) inOrder(low, high string) error {
	a, b := s.fs.Lookup(low), s.fs.Lookup(high)
	switch {
	case s.number(low) <= s.number(high), s.number(high) == 0: // 0: any
		return nil
	case a.Changed:
		return s.fault(low, fmt.Sprintf("%s is more than %s, which is %s: lower it, or raise that", a.Value, high, b.Value))
	}
	return s.fault(high, fmt.Sprintf("%s is less than %s, which is %s: raise it, or lower that", b.Value, low, a.Value))
}

func (s *laneSettings) fault(name, what string) error {
	return fmt.Errorf("%s:%d: %s: %s", s.file, s.lines[name], name, what)
}

func (s *laneSettings) number(name string) float64 {
	for _, one := range s.table() {
		if one.name == name {
			return one.value()
		}
	}
	return 0
}
