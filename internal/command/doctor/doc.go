// Package doctor is headrace doctor: it looks at all that a run needs before any item is sent, and says of
// each thing whether it is well, and else what to do.
//
// It promises that each finding names the thing, the value and a remedy, that nothing which proves who
// calls is ever shown, and that no file of a run changes. With --offline it calls nobody.
//
//	flags, environment, file ──▶ settings ─┬─▶ key: where it is, whether it is there
//	                                       ├─▶ network: proxy, name, TLS, an answer of any kind ──▶ clock
//	                                       └─▶ call: one token, and the limits that its answer tells
//	input, output ──▶ files: items, lock, sync, room        limits of this machine, terminal
//	                                       │
//	                                       ▼
//	                      findings, as text or as JSON, and an exit code
package doctor
