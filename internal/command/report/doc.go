// Package report is headrace report: what became of an output, as a page, as text for a pull
// request, or as JSON.
//
//	result files ─▶ journal.ReadItems ─┐
//	timeline ─▶ timeline.ReadRuns ─────┼▶ Report: figures ─┬▶ HTML: with plots, painted by chart
//	lock ─▶ status.Fate ───────────────┘                   ├▶ Markdown
//	                                                       └▶ JSON
//
// Of headrace serve, a Serving counts requests, and Served is its report. A Moment is a run as its live page shows it.
//
// It works at any time, also while a run writes and after it was killed, and changes nothing. Figures
// of items, tokens and money are those of the result files, as headrace status counts them; those of
// time and calls are the runs' own, from their timeline. Without a timeline these are missing, and the
// report says so.
//
// It promises a page of at most MaxBytes whatever the run, in bounded memory, that runs no script, loads
// nothing, and stands where styles are forbidden too. All texts of others are escaped. It shows examples of
// failures, and no other part of a prompt or an answer.
package report
