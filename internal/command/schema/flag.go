package schema

import (
	"fmt"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider"
)

// Of reads the schema of --schema; nil: there is none.
func Of(f *settings.Flags) (*Schema, error) {
	if f.Schema == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	s, err := Load(f.Schema)
	if err != nil {
		return nil, exit.Refuse("--schema %s: %s", f.Schema, exit.PlainText(err))
	}
	return s, nil
}

// Takes refuses lines whose answers have no words, as none of them would fit, and leaves the others
// to takes, which may be nil.
func Takes(takes func(*prompts.Request) error) func(*prompts.Request) error {
	return func(q *prompts.Request) error {
		switch {
		case provider.OnlyReads(q.Endpoint):
			return fmt.Errorf("its answer has no text that --schema could check: %s", q.Endpoint)
		case takes == nil:
			return nil
		}
		return takes(q)
	}
}
