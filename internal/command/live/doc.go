// Package live is a page that moves while its subject does: a run, or headrace serve.
//
//	render ─▶ Page: at most once a second, and only while somebody looks
//	            ├─ GET /        whole, also without script
//	            └─ GET /events  server-sent events, each the whole page again; the last says that it is the last
//
// It promises that a page nobody looks at costs nothing, that it only shows, and that it loads nothing from elsewhere.
// Each viewer is a connection with a goroutine of its own, and a slow one misses states and holds up nobody. There
// are at most MaxViewers. A page in a tab that is hidden lets its connection go.
package live
