package run

import (
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
)

// routeJob spreads a job over the lanes of the file, if there are several.
func (r *runner) routeJob(job *promptfile.Config) {
	if r.routes == nil {
		return
	}
	job.Reader.Serves, job.Reader.Takes = r.routes.Serves(), r.routes.Takes
	if job.Reader.DefaultModel == "" && r.Account.Books != nil {
		job.Reader.DefaultModel = settings.SimDefaultModel
	}
	job.Lane = func(model string) string { return model } // of no call: each request has a pool
	job.Pool = func(q *prompts.Request) string {
		if route := r.routes.Of(q); route != nil {
			return route.Name
		}
		return q.Model // its file has changed since the check: no lane is known for it
	}
	mixed := !r.Flags.Fleet.SpeaksOpenAI()
	job.Origin = func(pool, lane string) (o promptfile.Origin) {
		if route := r.routes.Named(pool); route != nil {
			o.Fallback = route.Fallback(lane)
		}
		if found := r.Account.LaneNamed(lane); found != nil && mixed {
			o.Provider = found.Name
		}
		return o
	}
}

// routeStream finds the routes for a stream in advance. Its lines cannot be read before the run, so only the
// default model is known.
func (r *runner) routeStream(src promptfile.Input) error {
	if r.routes == nil || !src.Stream {
		return nil
	}
	model := r.Flags.DefaultModel()
	if model == "" && r.Account.Books != nil {
		model = settings.SimDefaultModel
	}
	if err := r.routes.Foresee(model); err != nil {
		return exit.Refuse("%s: %v", src.Name, err)
	}
	return nil
}

// closeRoutes ends the search for routes. It refuses an input with lines that no lane takes.
func (r *runner) closeRoutes(src promptfile.Input) error {
	if r.routes == nil {
		return nil
	}
	if err := r.routes.Close(); err != nil {
		return r.verdict.FailAgain(exit.Usage, "%s: %v; nothing was called: correct the models of the lines, or lanes and pools in %s, then run:", src.Name, err, r.Flags.Config)
	}
	return nil
}

// optionsOfRun returns the options for the run's calls, lanes and observers.
func (r *runner) optionsOfRun(plan *promptfile.Plan) ([]batch.Option, error) {
	opts := slices.Concat(r.calls.options(), r.show.recorder.Options())
	if r.routes == nil {
		return append(opts, r.calls.tiers(plan)...), nil
	}
	lanes, err := r.routes.Options(r.pilot != nil)
	if err != nil {
		return nil, exit.Refuse("%s", exit.PlainText(err))
	}
	return slices.Concat(opts, lanes, []batch.Option{batch.WithAttemptTimeout(0)}), nil // each lane has its own
}
