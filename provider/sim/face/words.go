package face

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
)

// MaxBody bounds a request's body: the longest line that a prompt file may
// have, and room for what is wrapped around it.
const MaxBody = 65 << 20

// Garbled returns one of the ways in which a 200 can be no answer: a proxy's page, an empty body,
// or the face's error object.
func Garbled(id string, object Reply) Reply {
	switch Mix(Sum(id)) % 3 {
	case 0:
		return Typed(http.StatusOK, "text/html", []byte("<html><body>Please stand by.</body></html>"))
	case 1:
		return JSON(http.StatusOK, nil)
	}
	return object
}

// Quote turns any string into valid JSON, whatever bytes it has.
func Quote(s string) []byte { return gjson.AppendJSONString(nil, s) }

// short is the part of a unit that summed fractions may be short of a whole.
const short = 1e-6

// Count rounds down: a remainder is never promised that is not there.
func Count(x float64) int64 { return int64(x + short) }

// Whole is Count in digits.
func Whole(x float64) string { return strconv.FormatInt(Count(x), 10) }

// Grouped is Whole with a comma before each three digits, as in 40,000.
func Grouped(x float64) string {
	s := Whole(x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Seconds returns the whole seconds of a wait, rounded up and at least one, as in Retry-After:
// zero would say "at once" where there is a wait.
func Seconds(d time.Duration) int64 {
	return int64(max(1, (d+time.Second-1)/time.Second))
}

// Bearer returns the key behind the word Bearer in Authorization, "" if there is none.
func Bearer(h http.Header) string {
	const word = "Bearer "
	auth := h.Get("Authorization")
	if len(auth) < len(word) || auth[:len(word)] != word {
		return ""
	}
	return auth[len(word):]
}
