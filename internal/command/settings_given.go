package command

import (
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/event"
)

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
				value := withoutKeys(f.Value.String())
				s.Value = &value
			}
			list = append(list, s)
		}
	})
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
