package face

import "fmt"

// EventStream is the content type of server-sent events.
const EventStream = "text/event-stream"

// Event returns a server-sent event with a line of JSON; without a name it is the data alone.
func Event(name string, data []byte) []byte {
	if name == "" {
		return fmt.Appendf(nil, "data: %s\n\n", data)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

// perToken is the number of characters of a token: see [TokensOf].
const perToken = 4

// Split cuts a text of ASCII into the tokens in which a stream brings it.
func Split(text string) (tokens []string) {
	for len(text) > perToken {
		tokens = append(tokens, text[:perToken])
		text = text[perToken:]
	}
	return append(tokens, text)
}
