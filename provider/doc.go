// Package provider says in our own words what the outside world says: what a failed call means
// (Kind, Error, Classify), what a response's headers tell (RateLimits, ParseRetryAfter), and
// what a call used (Usage). It also brings all of that to the code that watches the attempt
// (Recorder, Transport).
//
// It promises that everything it reads is untrusted and everything it keeps is
// bounded: no header, body or message makes it panic, wait for years or hold
// more than MaxErrorBody of a failed answer, or MaxHeard of a good one.
//
//	 the user's function, any SDK          provider/openai
//	               │                             │
//	               └──────── http.Client ────────┘
//	                             │
//	    Recorder ◀ headers, usage Transport ──▶ the provider
//	(in the context)             │
//	       │              status, headers, body
//	       │                     ▼
//	       │     Classify: size ▸ empty account ▸ codes and types ▸ prose ▸ status ▸ x-should-retry
//	       ▼                     ▼
//	    Record                 Error{Kind, RetryAfter, Quota, …}
//	       └─────────┬───────────┘
//	                 ▼
//	   batch and coordinator, which know these words only
//
// The package reads the wall clock for one purpose only: to compare a header that
// is a date, in a response that has no Date of its own.
package provider
