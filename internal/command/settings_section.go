package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

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
	body := sectionOf(s)
	if len(body) == 0 {
		c.complain(s.Key, name+" has no settings", fmt.Sprintf("write them below it, indented, as in \"%s: …\": there are %s", keys[0], strings.Join(keys, ", ")))
	}
	for _, one := range body {
		key := one.Key.GetToken().Value
		if !slices.Contains(keys, key) {
			c.complain(one.Key, fmt.Sprintf("%s has no setting %q", name, clipped(key)), "there are "+strings.Join(keys, ", "))
			continue
		}
		c.laneSetting(one, name+"."+key)
	}
}

// sectionOf returns the lines of a section; none if it is not one.
func sectionOf(s *ast.MappingValueNode) []*ast.MappingValueNode {
	switch v := s.Value.(type) {
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}
	case *ast.MappingNode:
		return v.Values
	}
	return nil
}

func (c *configFile) laneSetting(s *ast.MappingValueNode, name string) {
	value, ok := plainValue(s.Value)
	if !ok {
		c.complain(s.Key, name+" needs a single value", "write a number or a length of time")
		return
	}
	c.lanes.lines[name] = s.Key.GetToken().Position.Line
	if err := c.lanes.fs.Set(name, value); err != nil {
		c.complain(s.Key, fmt.Sprintf("%s: %q is not a %s", name, clipped(value), kindOfFlag(c.lanes.fs.Lookup(name))), "correct or remove it")
		return
	}
	for _, one := range c.lanes.table() {
		if x := one.value(); one.name == name && !(x >= one.least && x <= one.most) { // NaN too
			c.complain(s.Key, fmt.Sprintf("%s: %s is out of bounds", name, clipped(value)), "it may be "+one.allowed())
		}
	}
}

// check finds settings that contradict each other, or the law of the run.
func (s *laneSettings) check(law string) (faults []error) {
	if s == nil {
		return nil
	}
	for _, part := range []string{"ramp", "cooldown", "rate.min", "rate.max", "rate.increase", "rate.decrease"} {
		if s.given(part) && law != lawPlain {
			faults = append(faults, s.fault(part, fmt.Sprintf("it needs \"law: plain\", and the law is %s: add that, or remove it", law)))
		}
	}
	for _, part := range []string{"rate.initial", "error-window"} {
		if s.given(part) && law == lawNone {
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
