package provider

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
