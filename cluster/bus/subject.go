package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxName bounds the bytes of a job's, limit's or worker's name on the bus.
const MaxName = 200

// ErrName is the kind of error of a name that is empty or longer than [MaxName].
var ErrName = errors.New("want a name of 1 to 200 bytes")

// escape makes a name one token of a subject, where dots, stars, blanks and > have a meaning.
// Different names stay different: each byte except letters, digits, - and _ becomes = and two hexadecimal digits.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// unescape undoes escape. A token that escape did not write is an error.
func unescape(token string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if plain(token[i]) {
			b.WriteByte(token[i])
			continue
		}
		if token[i] != '=' || i+2 >= len(token) {
			return "", ErrName
		}
		c, err := strconv.ParseUint(token[i+1:i+3], 16, 8)
		if err != nil {
			return "", ErrName
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}

// named checks names before they are sent.
func named(names ...string) error {
	for _, name := range names {
		if name == "" || len(name) > MaxName {
			return ErrName
		}
	}
	return nil
}

// subject joins a space, a kind of message and names to a subject.
func subject(space, kind string, names ...string) string {
	var b strings.Builder
	b.WriteString(space + "." + kind)
	for _, name := range names {
		b.WriteString("." + escape(name))
	}
	return b.String()
}

// under returns the pattern of all subjects with this beginning, for subscriptions.
func under(space, kind string, names ...string) string {
	return subject(space, kind, names...) + ".>"
}
