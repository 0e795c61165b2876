// Package panel shows how a run stands on a terminal: at most ten rows that are painted
// again and again, below the lines of what happens.
//
//	event.Progress ─▶ Layout ─▶ rows ─▶ Screen ─▶ terminal
//	                  pure,     plain   moves up only over rows
//	                  measured  text    that it has painted
//
// What a Layout shows hangs on the room that there is:
//
//	columns and rows   shown
//	120 x 30           the panel, and a table of up to eight lanes where there are several
//	60 x 14            the panel: ten rows at most
//	40 x 6             four rows
//	less               one row
//
// It promises that no row reaches the last column, whatever names and messages are in it and
// whatever signs they are written in, that none of these steers the terminal, and that colour
// says nothing that words do not. A Screen writes once for each frame, and only rows that have
// changed. It erases row by row: where "clear to the end" begins in the first column, some
// terminals take it for clearing the screen, and put what stood there into their history.
//
// Terminals differ in how they break rows anew when they are resized. A Screen waits until the
// size has rested. If the terminal has become narrower, as many lines are erased as the old rows
// take now in one that is known to break them anew, and else as many as there were rows: then a
// part of the old ones may stay above. What has left a terminal that became lower stays in its
// history.
package panel
