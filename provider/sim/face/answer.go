package face

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"
)

// sentences end the answers. Their lengths differ so that output tokens do; all
// are short enough that an answer stays within 32 tokens of four characters.
var sentences = [...]string{
	"The water is quiet.",
	"The gate stands a little open.",
	"The wheel turns as fast as the stream allows.",
	"Nothing was lost on the way here.",
	"The channel carries exactly what the mill can take today.",
	"It runs.",
	"Upstream the snow is melting, and the level has begun to rise.",
	"Ask again and the answer will be the same.",
}

// Answer returns the simulated provider's answer to a prompt: always the same, with
// the prompt's [Checksum] in it. It is plain ASCII of at most 128 characters.
// A call's max_tokens may cut it short. What stands behind "Answer exactly: " in a prompt is the answer
// itself, of any length, if that is ASCII.
func Answer(prompt string) string {
	if _, answer, ok := strings.Cut(prompt, exactly); ok && answer != "" && strings.IndexFunc(answer, beyondASCII) < 0 {
		return answer
	}
	sum := Sum(prompt)
	return fmt.Sprintf("Simulated answer %016x. %s", sum, sentences[Mix(sum)%uint64(len(sentences))])
}

// exactly are the words by which a prompt dictates its answer, for tests of programs that read
// answers.
const exactly = "Answer exactly: "

func beyondASCII(r rune) bool { return r > unicode.MaxASCII }

// Checksum returns 16 hexadecimal digits that tell one text from another: FNV-1a of 64 bits,
// which does not protect against a deliberate collision. For several texts it is that of
// all, one after the other.
func Checksum(texts ...string) string {
	return fmt.Sprintf("%016x", Sum(texts...))
}

// Sum returns the checksum as a number.
func Sum(texts ...string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, text := range texts {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
	}
	return h
}

// Mix spreads near numbers over the whole range (the finalizer of splitmix64).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Dimensions is the length of an embedding: enough to tell texts apart, short
// enough that thousands of answers are cheap to read.
const Dimensions = 8

// Embedding returns the vector for a text: always the same, of length one.
func Embedding(text string) []float32 {
	sum, norm := Sum(text), 0.0
	v := make([]float32, Dimensions)
	for i := range v {
		sum = Mix(sum)
		v[i] = float32(float64(sum>>11)/(1<<52) - 1)
		norm += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

// AppendVector appends the vector for a text as a list of numbers.
func AppendVector(b []byte, text string) []byte {
	for i, x := range Embedding(text) {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}

// Each appends what one makes of each item, with commas between.
func Each[T any](b []byte, items []T, one func(b []byte, i int, item T) []byte) []byte {
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, i, item)
	}
	return b
}

// Base64Floats returns a vector in the encoding that some clients ask for by default: float32,
// little endian.
func Base64Floats(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// TokensOf estimates tokens from characters at four to one, the figure that OpenAI
// gives for English and charges beforehand.
func TokensOf(chars int) int { return (chars + 3) / 4 }

// Rank is a document's place in an answer to a query.
type Rank struct {
	Index int     // of the document in the request
	Score float64 // from 0 to 1
}

// Ranks returns the documents by how well they answer the query, the best first, and at most
// top of them; 0 is all. A score depends on both texts alone: the same texts always have the
// same score, and other texts another.
func Ranks(query string, documents []string, top int) []Rank {
	ranks := make([]Rank, len(documents))
	for i, document := range documents {
		ranks[i] = Rank{i, float64(Mix(Sum(query, "\n", document))>>11) / (1 << 53)}
	}
	slices.SortStableFunc(ranks, func(a, b Rank) int { return cmp.Compare(b.Score, a.Score) })
	if top > 0 && top < len(ranks) {
		ranks = ranks[:top]
	}
	return ranks
}

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

// maxExcerpt bounds the part of a value that is shown, in bytes.
const maxExcerpt = 100

// Excerpt returns a text, or its beginning if it is long.
func Excerpt(raw string) string {
	if len(raw) > maxExcerpt {
		return strings.ToValidUTF8(raw[:maxExcerpt], "") + "…"
	}
	return raw
}

// TellWait names the wait in the headers, if the verdict has one; exactly adds the wait
// in milliseconds, too.
func (v Verdict) TellWait(h http.Header, exactly bool) {
	if !v.HasRetryAfter {
		return
	}
	h["Retry-After"] = []string{strconv.FormatInt(Seconds(v.RetryAfter), 10)}
	if exactly {
		h["Retry-After-Ms"] = []string{strconv.FormatInt(v.RetryAfter.Milliseconds(), 10)}
	}
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
