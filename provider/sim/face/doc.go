// Package face says what the face of a simulated provider is, and has what all faces share.
//
//	http.Request ─▶ Find ─▶ Errand ─▶ Read ─▶ Request ─▶ Call ─▶ (judged) ─▶ Verdict
//	                                             │                              │
//	                           Answer, Refuse, Tell ◀───────────────────────────┘
//	                                             │
//	                                             ▼
//	                                           Reply ─▶ Mark ─▶ the wire
//
// A face reads what was asked in one provider's dialect and words what is answered; it
// decides nothing, counts nothing and knows no time but what a [Stamp] tells it. So one
// model of a quota stands behind all of them, and one more face is one more folder.
//
// Every face answers a prompt with [Answer] of it: what the user said last, its text parts
// joined by line breaks. [Form] is how a face says which fields its provider takes: a body
// that a provider would refuse is refused, with the path of the first flaw.
package face
