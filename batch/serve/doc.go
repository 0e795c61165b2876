// Package serve is an http.Handler with the provider's own face: clients of any language call it as
// they would call the provider, and their calls wait in one line instead of being refused.
//
//	client ─▶ door ─▶ route ─▶ room ─▶ queue ─▶ batch.Do ─▶ Upstream ─▶ the provider
//	          token   dialect  body    │ its turn          │ the provider's key, for the client's token
//	          host    model            │                   │
//	client ◀── pings, for a stream ◀───┘                   │
//	client ◀── the answer, as it comes ◀───────────────────┘
//
// It promises that a body goes out byte for byte, and that an answer comes back so, except for streams that
// Config.InjectUsage has counted. The tokens of
// clients never leave, and the provider's keys never come out. A client that goes away while it
// waits costs nothing. A request has no goroutine but its connection's, and one more
// while its stream is pinged.
//
// One request of a pool at a time has its turn and asks the coordinator; package queue holds the others. So the
// coordinator alone decides when a call may leave, and the queue alone whose call that is.
//
// A request is refused before it is read where that can be seen. What is shared by all requests is
// one value that passes from hand to hand through a channel: nobody holds it while he waits.
package serve
