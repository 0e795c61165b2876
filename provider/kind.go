package provider

import "strings"

// Kind says what a failed call means, in the only words that batch and
// coordinator know. The zero value is Unknown. A Kind is itself an error, so
// that errors.Is(err, provider.Throttled) asks for the kind of a failure
// however deeply it is wrapped.
type Kind uint8

// The kinds, each with the failures that it stands for.
const (
	// Unknown is everything that no other kind describes.
	Unknown Kind = iota
	// Throttled is a 429 with a rate reason: the caller is too fast.
	Throttled
	// Overloaded is a 503, 529 or the word "overloaded": the provider is too
	// full, whatever the caller's rate. It uses no attempt, so the code that
	// tries again must bound the tries in time.
	Overloaded
	// QuotaExhausted is an empty balance, a spend limit or a quota that comes
	// back in hours: waiting a little does not help.
	QuotaExhausted
	// Unauthorized is a refused key, account, region or permission, in the provider's own words.
	Unauthorized
	// Timeout is an attempt that ran out of time.
	Timeout
	// TransportFault is an answer that never came, or not whole: reset, EOF, DNS,
	// refused connection, HTML where JSON was due, also as a 403, a body cut short. Its word is
	// "transport"; the name Transport belongs to the http.RoundTripper.
	TransportFault
	// EmptyAnswer is a good status with no answer in it: no body, {}, an empty list
	// of choices. An answer without text, whose end the provider gives a reason for, is
	// an answer.
	EmptyAnswer
	// Server is a fault of the provider's own: 500, 502, 504.
	Server
	// Invalid is a request that no repetition will make acceptable.
	Invalid
	// Refused is a request or answer that a content filter stopped. An answer that has null
	// for its content and says nothing else counts as one.
	Refused
	// Truncated is an answer that ended at its length limit. It is delivered
	// as a success and marked; it is never tried again.
	Truncated
	// Canceled is an end that the caller asked for. It is counted nowhere.
	Canceled
	// ModelNotFound is a 404: the lane's name or address is wrong, or one item
	// asks for something that is not there.
	ModelNotFound
	// Misconfigured is a fault that no call of this run can survive: a certificate
	// that does not verify, an unsupported scheme, an impossible URL.
	Misconfigured
	// Misfit is a good answer without the form that its caller needs, such as JSON that does not
	// fit a schema. The caller's own code finds that out; see DoesNotFit. Its word is "schema".
	Misfit
)

// trait is one thing a kind decides; a kind has a set of them.
type trait uint8

const (
	again trait = 1 << iota
	attempt
	cools
	breaker
	stopsLane
	stopsRun
)

// Exit codes of a run that a failure of some kind has ended. They are the
// command's promise to scripts.
const (
	exitItemsFailed   = 1
	exitMisconfigured = 2
	exitStopped       = 3
	exitInterrupted   = 130
)

// kinds is the whole table of failures. What is not set is a no.
var kinds = [...]struct {
	word         string
	traits       trait
	exit         int
	first, later uint8 // see StopsLaneAfter
}{
	Unknown:        {"unknown", again | attempt | breaker, exitItemsFailed, 0, 0},
	Throttled:      {"throttled", again | cools, exitItemsFailed, 0, 0},
	Overloaded:     {"overloaded", again | cools | breaker, exitItemsFailed, 0, 0},
	QuotaExhausted: {"quota_exhausted", stopsLane, exitStopped, 0, 0},
	Unauthorized:   {"unauthorized", 0, exitStopped, 1, 5},
	Timeout:        {"timeout", again | attempt | breaker, exitItemsFailed, 0, 0},
	TransportFault: {"transport", again | attempt | breaker, exitItemsFailed, 0, 0},
	EmptyAnswer:    {"empty_answer", again | attempt | breaker, exitItemsFailed, 0, 0},
	Server:         {"server", again | attempt | breaker, exitItemsFailed, 0, 0},
	Invalid:        {"invalid", 0, exitItemsFailed, 0, 0},
	Refused:        {"refused", 0, exitItemsFailed, 0, 0},
	Truncated:      {"truncated", 0, exitItemsFailed, 0, 0},
	Canceled:       {"canceled", 0, exitInterrupted, 0, 0},
	ModelNotFound:  {"model_not_found", 0, exitStopped, 1, 5},
	Misconfigured:  {"misconfigured", stopsLane | stopsRun, exitMisconfigured, 0, 0},
	Misfit:         {"schema", 0, exitItemsFailed, 0, 0},
}

// known maps a value outside the table, which only a conversion can make, to
// Unknown, so that no method can panic.
func (k Kind) known() Kind {
	if int(k) < len(kinds) {
		return k
	}
	return Unknown
}

func (k Kind) has(t trait) bool { return kinds[k.known()].traits&t != 0 }

// String returns the kind's word in snake_case, as error codes in output files
// have it.
func (k Kind) String() string { return kinds[k.known()].word }

// Error returns the same word as String, because fmt prefers Error and both
// must print alike.
func (k Kind) Error() string { return k.String() }

// Again reports whether the item is to be tried again.
func (k Kind) Again() bool { return k.has(again) }

// UsesAttempt reports whether the failure counts against the item's attempts.
// It is false where the failure says nothing about the item.
func (k Kind) UsesAttempt() bool { return k.has(attempt) }

// Cools reports whether the lane must pause before it sends anything else.
func (k Kind) Cools() bool { return k.has(cools) }

// BreakerCounts reports whether the failure is one that a circuit breaker
// counts: the server, or the way to it, is in trouble.
func (k Kind) BreakerCounts() bool { return k.has(breaker) }

// StopsLane reports whether one such failure says that the lane is of no more use in this
// run, whatever item met it.
func (k Kind) StopsLane() bool { return k.has(stopsLane) }

// StopsLaneAfter returns the number of different items that must fail with this kind, with no
// item answered in between, before their lane is of no more use. It is first if the lane never
// answered, else later. Fewer failures are those of their items: a key that is refused for one
// item may be right for all others. 0: the lane stays in use after any number of them.
func (k Kind) StopsLaneAfter() (first, later int) {
	of := &kinds[k.known()]
	return int(of.first), int(of.later)
}

// StopsRun reports whether no call of the run can succeed.
func (k Kind) StopsRun() bool { return k.has(stopsRun) }

// ExitCode returns the exit code of a command whose run ended because of this kind:
// 1 items failed, 2 configuration is wrong, 3 the provider stopped the run,
// 130 interrupted.
func (k Kind) ExitCode() int { return kinds[k.known()].exit }

// noContent is the finish that ReplyOf gives a message with null for its content. A content
// filter leaves such a message where the provider names no other reason.
const noContent = "no_content"

// FinishKind says whether a finish reason marks the answer as Truncated or
// Refused, in small letters or capitals; both are answers all the same. It returns false
// for every other reason.
func FinishKind(finish string) (Kind, bool) {
	switch finish { // the usual words, of which no small letters are made
	case "", "stop", "STOP", "end_turn":
		return Unknown, false
	}
	switch word := strings.ToLower(finish); word {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return Truncated, true
	case "content_filter", "content_filtered", "refusal", "safety", "guardrail_intervened",
		"recitation", "language", "blocklist", "prohibited_content", "spii", "model_armor", // the filters of Gemini
		"sensitive", noContent: // Z.ai's, and ReplyOf's
		return Refused, true
	default:
		// Gemini's, of pictures, and those of its door in OpenAI's shape.
		if strings.HasPrefix(word, "image_") || strings.HasPrefix(word, "content_filter: ") {
			return Refused, true
		}
	}
	return Unknown, false
}

// IsFiltered reports whether a finish reason says that a content filter has cut the answer
// short or emptied it.
func IsFiltered(finish string) bool {
	kind, known := FinishKind(finish)
	return known && kind == Refused
}

// Filtered returns the error of an answer that [IsFiltered], for callers that treat it as a
// failure.
func Filtered(finish string, status int, requestID string) *Error {
	return &Error{
		Kind: Refused, Status: status, Code: finish, RequestID: requestID,
		Message: "a content filter has cut the answer short or emptied it",
	}
}

// End says why an answer ended, in a word that holds for all dialects. "" is not known.
type End string

// The ends.
const (
	EndStop    End = "stop"    // the model was done, or met a word at which it was to stop
	EndLength  End = "length"  // at a bound on its length
	EndTool    End = "tool"    // it asks for a tool to be used
	EndRefused End = "refused" // the model or a filter declines
	EndOther   End = "other"
)

// EndOf says what a provider's own word for an end means.
func EndOf(finish string) End {
	if kind, known := FinishKind(finish); known {
		if kind == Truncated {
			return EndLength
		}
		return EndRefused
	}
	switch strings.ToLower(finish) {
	case "":
		return ""
	case "stop", "end_turn", "stop_sequence", "complete", "completed", "eos":
		return EndStop
	case "tool_calls", "tool_use", "function_call", "tool_call":
		return EndTool
	}
	return EndOther
}
