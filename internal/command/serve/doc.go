// Package serve is headrace serve: programs in any language call the provider's own paths on this machine, and
// wait in one line instead of being refused.
//
//	flags, --config ─ settings ─ account ─▶ upstream ─┐
//	--clients, token ─▶ who may come in ──────────────┤
//	--addr, --socket ─▶ entrance ─▶ http.Server ─▶ batch/serve ─▶ batch.Shared ─▶ --state
//	                                                  └─▶ panel, lines, access log, past ─▶ page, figures for a report
//
// It promises that nobody comes in who was not let in: an address that other machines reach has clients with
// tokens, and TLS unless the user says otherwise. A socket is for processes of the same user. The provider's
// key and the tokens are in no line of a log.
//
// One goroutine hears signals: SIGHUP reads the files again, and a fault in one of them changes nothing. The
// first of the others drains the server, and a second ends it.
package serve
