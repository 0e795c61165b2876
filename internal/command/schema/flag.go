package schema

import (
	"fmt"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider"
)

// Of returns the schema of --schema, or the one that a job has brought; nil if there is none.
func Of(f *settings.Flags) (*Schema, error) {
	if f.JobSchema != "" {
		s, err := Unpack(f.JobSchema)
		if err != nil {
			return nil, exit.Refuse("the schema of the job: %s", exit.PlainText(err))
		}
		return s, nil
	}
	if f.Schema == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	s, err := Load(f.Schema)
	if err != nil {
		return nil, exit.Refuse("--schema %s: %s", f.Schema, exit.PlainText(err))
	}
	return s, nil
}

// maxJobSchema bounds the schema that a job brings to its workers, in bytes. It stands in the job's record, which each
// change writes anew.
const maxJobSchema = 256 << 10

// OfJob returns the schema of --schema as a job brings it to its workers, with all files that it refers to; "": there is
// none.
func OfJob(f *settings.Flags) (string, error) {
	if f.Schema == "" {
		return "", nil
	}
	text, err := Pack(f.Schema)
	switch {
	case err != nil:
		return "", exit.Refuse("--schema %s: %s", f.Schema, exit.PlainText(err))
	case len(text) > maxJobSchema:
		return "", exit.Refuse("--schema %s: it has %d bytes, with all files that it refers to, and a job brings %d at most to its workers: shorten it", f.Schema, len(text), maxJobSchema)
	}
	return text, nil
}

// Takes returns a check of requests: it refuses those whose answers have no text that a schema could fit. It leaves
// the others to takes, which may be nil.
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
