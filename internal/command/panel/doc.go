// Package panel shows how a run stands on a terminal: at most ten rows that are painted
// again and again, below the lines of events.
//
//	event.Progress ─▶ Layout ─▶ rows ─▶ Screen ─▶ terminal
//	                  pure,     plain   moves up only over rows
//	                  measured  text    that it has painted
//
// The room on the terminal decides what a Layout shows:
//
//	columns and rows   shown
//	120 x 30           the panel, and a table of up to eight lanes where there are several
//	60 x 14            the panel: ten rows at most
//	40 x 6             four rows
//	less               one row
//
// It promises that no row reaches the last column, no matter which names and messages are in it
// and in which script they are written. None of these texts steers the terminal, and colour
// says nothing that words do not. A Screen writes once for each frame, and only rows that have
// changed. It erases row by row. If "clear to the end" begins in the first column, some
// terminals take it for clearing the screen, and move the old text into their history.
//
// Terminals differ in how they break their rows again after a resize. A Screen waits until the
// size has rested. On a narrower terminal of a kind known to break rows again, it erases as many
// lines as the old rows take now. On any other it erases as many as there were rows, and a part
// of the old ones may stay above. Rows that have left a terminal that became lower stay in its
// history.
package panel
