package run

import (
	"errors"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/schema"
	"github.com/headrace/headrace/provider"
)

// checkJob makes a job check its answers against the schema. Lines whose answers cannot be checked are
// refused.
func (r *runner) checkJob(job *promptfile.Config) {
	if r.schema == nil {
		return
	}
	job.CheckRetries = r.Flags.SchemaRetries
	job.Check = func(_ *promptfile.Item, reply *provider.Reply) error {
		err := r.schema.Check(reply)
		if err == nil {
			return nil
		}
		return errors.New(r.Redact(err.Error()))
	}
	job.Reader.Takes = schema.Takes(job.Reader.Takes)
}
