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
	fs.VisitAll(func(flag *pflag.Flag) {
		value, ok := env(environmentName(flag.Name))
		if flag.Changed || !ok || value == "" || flag.Name == "help" {
			return
		}
		if flag.Name == "header" {
			value = headersInLines(value)
		}
		if err := fs.Set(flag.Name, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is not a %s: correct or unset it", environmentName(flag.Name), value, KindOfFlag(flag)))
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
	config := configFile{File: file, flags: f.All, own: f.Own, lanes: f.Lanes, headers: &f.headers, lines: map[string]int{}}
	for _, entry := range config.Entries() {
		config.setEntry(entry)
	}
	f.ConfigBaseURL = config.baseURL
	f.Fleet, f.fileLines, f.fileHeaders = config.readFleet(config.laneNodes, config.poolNodes), config.lines, config.ownHeaders
	return Usage(config.Faults...)
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

// setEntry applies one entry of the file: headers, a setting of lanes, or a flag. A flag that was set
// elsewhere keeps its value. Keys are refused, as they belong into a variable.
func (c *configFile) setEntry(entry *ast.MappingValueNode) {
	name := entry.Key.GetToken().Value
	flag := c.flag(name)
	if name == "headers" {
		c.setHeaders(entry)
		return
	}
	if flag == nil && (c.keepLanesAndPools(entry) || c.setLaneEntry(entry)) {
		return
	}
	switch {
	case flag == nil && slices.Contains(OfServe, name):
		return // it is of headrace serve alone: one file serves all commands
	case IsKeyFlag(name):
		c.Complain(entry.Key, "keys are not allowed in this file", "put it into a variable, and name the variable with api-key-env")
		return
	case flag == nil || slices.Contains(notInFile, name) && name != "header":
		c.Complain(entry.Key, fmt.Sprintf("unknown setting %q", Clipped(name)), DidYouMean(Nearest(name, c.names()))+"settings are the flags of headrace run, without their dashes")
		return
	}
	value, ok := yamlfile.Plain(entry.Value)
	if !ok {
		c.Complain(entry.Key, name+" needs a single value", fmt.Sprintf("write it as in \"%s: …\"", name))
		return
	}
	if !flag.Changed {
		c.set(entry, flag, value)
	}
}

// flag returns the flag of that name; nil if there is none. The command's own flags come first: one may have
// the name of a flag of run.
func (c *configFile) flag(name string) *pflag.Flag {
	if c.own != nil {
		if f := c.own.Lookup(name); f != nil {
			return f
		}
	}
	return c.flags.Lookup(name)
}

// keepLanesAndPools stores the entry if it is the lanes or the pools, and reports whether it was. Both are
// read once all flags are known.
func (c *configFile) keepLanesAndPools(s *ast.MappingValueNode) bool {
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

// names lists the names of all settings that the file may have.
func (c *configFile) names() (names []string) {
	names = slices.Clone(OfServe)
	c.flags.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(notInFile, flag.Name) || flag.Name == "header" {
			names = append(names, flag.Name)
		}
	})
	names = append(names, "headers", "lanes", "pools")
	for _, setting := range c.lanes.table() {
		section, _, _ := strings.Cut(setting.name, ".")
		names = append(names, section)
	}
	return names
}

// OfServe are the flags of headrace serve that headrace run does not have.
var OfServe = []string{
	"addr", "socket", "clients", "token-file", "open", "state", "tls-cert", "tls-key", "host", "allow-origin", "max-wait", "max-waiting", "max-body",
	"commit-after", "inject-usage", "on-disconnect", "drain", "drain-waiting",
}

// set gives a flag the value of an entry, and notes the entry's line for later complaints.
func (c *configFile) set(entry *ast.MappingValueNode, f *pflag.Flag, value string) {
	owner := c.flags
	if c.own != nil && c.own.Lookup(f.Name) == f {
		owner = c.own
	}
	if err := owner.Set(f.Name, value); err != nil {
		c.Complain(entry.Key, fmt.Sprintf("%s: %q is not a %s", f.Name, Clipped(value), KindOfFlag(f)), "correct or remove it")
	}
	c.baseURL = c.baseURL || f.Name == "base-url"
	if c.lines != nil {
		c.lines[f.Name] = entry.Key.GetToken().Position.Line
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

// settings lists the flags that were set and where their values came from. Reports show it, so nothing in it
// looks like a key.
func (o origins) settings(fs *pflag.FlagSet) []event.Setting {
	list := []event.Setting{}
	fs.VisitAll(func(flag *pflag.Flag) {
		if from := o[flag.Name]; from != "" {
			s := event.Setting{Name: flag.Name, From: from}
			if !isHidden[flag.Name] {
				value := exit.WithoutSecrets(flag.Value.String())
				s.Value = &value
			}
			list = append(list, s)
		}
	})
	return list
}

// Shown lists given settings by name, for readers who want to know how a job was made. Values that may be
// parts of a prompt are left out, as in a report of a run.
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
	for _, setting := range s.table() {
		if s.given(setting.name) {
			value := s.shown(setting.name)
			list = append(list, event.Setting{Name: setting.name, Value: &value, From: "file"})
		}
	}
	return list
}

// setLaneEntry applies an entry about lanes: a section, or a setting outside of sections. It reports whether
// the entry was one.
func (c *configFile) setLaneEntry(entry *ast.MappingValueNode) (taken bool) {
	name := entry.Key.GetToken().Value
	keys := c.lanes.keys(name)
	if len(keys) == 0 {
		if c.lanes.fs.Lookup(name) == nil || strings.Contains(name, ".") {
			return false
		}
		c.setLaneSetting(entry, name)
		return true
	}
	c.lanes.lines[name] = entry.Key.GetToken().Position.Line
	c.setSection(entry, name, keys)
	return true
}

// setSection applies the settings of one section, and complains about unknown ones.
func (c *configFile) setSection(section *ast.MappingValueNode, name string, keys []string) {
	body := yamlfile.Section(section)
	if len(body) == 0 {
		c.Complain(section.Key, name+" has no settings", fmt.Sprintf("write them below it, indented, as in \"%s: …\": there are %s", keys[0], strings.Join(keys, ", ")))
	}
	for _, entry := range body {
		key := entry.Key.GetToken().Value
		if !slices.Contains(keys, key) {
			c.Complain(entry.Key, fmt.Sprintf("%s has no setting %q", name, Clipped(key)), "there are "+strings.Join(keys, ", "))
			continue
		}
		c.setLaneSetting(entry, name+"."+key)
	}
}

// setLaneSetting sets a lane setting by its full name, and complains about a value out of its bounds. It
// notes the line, which also marks the setting as given.
func (c *configFile) setLaneSetting(entry *ast.MappingValueNode, name string) {
	value, ok := yamlfile.Plain(entry.Value)
	if !ok {
		c.Complain(entry.Key, name+" needs a single value", "write a number or a length of time")
		return
	}
	c.lanes.lines[name] = entry.Key.GetToken().Position.Line
	if err := c.lanes.fs.Set(name, value); err != nil {
		c.Complain(entry.Key, fmt.Sprintf("%s: %q is not a %s", name, Clipped(value), KindOfFlag(c.lanes.fs.Lookup(name))), "correct or remove it")
		return
	}
	for _, setting := range c.lanes.table() {
		if number := setting.value(); setting.name == name && !(number >= setting.min && number <= setting.max) { // NaN too
			c.Complain(entry.Key, fmt.Sprintf("%s: %s is out of bounds", name, Clipped(value)), "it may be "+setting.allowed())
		}
	}
}

// check returns the settings that contradict each other, or the law of the run.
func (s *laneSettings) check(law string) (faults []error) {
	if s == nil {
		return nil
	}
	for _, name := range []string{"ramp", "cooldown", "rate.min", "rate.max", "rate.increase", "rate.decrease"} {
		if s.given(name) && law != LawPlain {
			faults = append(faults, s.fault(name, fmt.Sprintf("it needs \"law: plain\", and the law is %s: add that, or remove it", law)))
		}
	}
	for _, name := range []string{"rate.initial", "error-window"} {
		if s.given(name) && law == LawNone {
			faults = append(faults, s.fault(name, "the law is none, which limits nothing: choose another law, or remove it"))
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
		faults = append(faults, s.checkOrder(pair[0], pair[1]))
	}
	return faults
}

// checkOrder returns an error if the lower of two bounds exceeds the higher. The error is about a bound that
// the file sets.
func (s *laneSettings) checkOrder(low, high string) error {
	lower, higher := s.fs.Lookup(low), s.fs.Lookup(high)
	switch {
	case s.number(low) <= s.number(high), s.number(high) == 0: // 0: any
		return nil
	case lower.Changed:
		return s.fault(low, fmt.Sprintf("%s is more than %s, which is %s: lower it, or raise that", lower.Value, high, higher.Value))
	}
	return s.fault(high, fmt.Sprintf("%s is less than %s, which is %s: raise it, or lower that", higher.Value, low, lower.Value))
}

func (s *laneSettings) fault(name, what string) error {
	return fmt.Errorf("%s:%d: %s: %s", s.file, s.lines[name], name, what)
}

// number returns the value of the setting of that name as a number; 0 if there is no such setting.
func (s *laneSettings) number(name string) float64 {
	for _, setting := range s.table() {
		if setting.name == name {
			return setting.value()
		}
	}
	return 0
}
