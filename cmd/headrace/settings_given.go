package main

import (
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/cmd/headrace/internal/event"
)

// origins are where the flags that were set have their values from, by name.
type origins map[string]string

// note takes it that whatever was set since the last time has its value from there.
func (o origins) note(fs *pflag.FlagSet, from string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed && o[f.Name] == "" {
			o[f.Name] = from
		}
	})
}

// isPrompt names the flags whose values are parts of prompts, which are shown nowhere.
var isPrompt = map[string]bool{"system": true, "template": true}

// settings lists the flags that were set, for whoever wants to know how a run was made.
// Nothing in them looks like a key.
func (o origins) settings(fs *pflag.FlagSet) []event.Setting {
	list := []event.Setting{}
	fs.VisitAll(func(f *pflag.Flag) {
		if from := o[f.Name]; from != "" {
			s := event.Setting{Name: f.Name, From: from}
			if !isPrompt[f.Name] {
				value := withoutKeys(f.Value.String())
				s.Value = &value
			}
			list = append(list, s)
		}
	})
	return list
}

// settings lists what the file says and no flag does.
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
