// Package chart paints plots over time as SVG, in plain Go, for pages that run no script.
//
//	Spans ─▶ Axis ─▶ x of a moment
//	              └─▶ Band, Plot ─▶ <svg>: title, desc, grid, paths, ticks
//
// It promises that a plot stands without a style sheet: colours are attributes of the shapes, and
// a page may change them by class. Each plot has a title and a description for those who cannot see
// it. Equal figures give equal bytes. All texts are escaped, and no value, however odd, gives a path
// that a browser refuses. The length of a plot depends on the number of its points only.
package chart
