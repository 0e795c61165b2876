// Package misfit decides what follows an answer that does not fit the schema of its job, on one worker.
//
// It promises three things. All workers together ask items again for at most a tenth of the first answers to items. An
// answer that was cut off is never asked for again. A job stops if a worker's first 20 answers do not fit, unless an
// answer fitted another worker of it.
//
//	answer ─▶ fits ──────────────────▶ result; the worker's first notes that in the store
//	             └▶ DoesNotFit ┬ tries and room left ▶ asked again
//	                           ├ else ───────────────▶ failed
//	                           └ none of the first 20, and no note ▶ the job stops
//
// Each worker counts only its own answers, in memory. A share of each worker's own answers is a share of all of them,
// however many workers come and go: a worker that dies takes its room with it. The note is the one thing that workers
// tell each other, and it is in the store:
//
//	jobs/<job>/FITS, created if absent
package misfit
