// Package face defines the face of a simulated provider, and holds what all faces share.
//
//	http.Request ─▶ Find ─▶ Errand ─▶ Read ─▶ Request ─▶ Call ─▶ (judged) ─▶ Verdict
//	                                             │                              │
//	                           Answer, Refuse, Tell ◀───────────────────────────┘
//	                                             │
//	                                             ▼
//	                                           Reply ─▶ Mark ─▶ the wire
//
// A face reads requests in one provider's dialect and words the answers. It decides nothing,
// counts nothing, and knows no time except that of a [Stamp]. So one model of a quota stands
// behind all of them, and one more face is one more folder.
//
// Every face answers a prompt with [Answer] of it: the user's last turn, its text parts
// joined by line breaks. A [Form] says which fields a face's provider takes: a body that a
// provider would refuse is refused, with the path of the first flaw.
package face
