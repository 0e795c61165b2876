package sim

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
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

// Answer is what the simulated provider says to a prompt: always the same, with
// the prompt's [Checksum] in it. It is plain ASCII of at most 128 characters.
// A call's max_tokens may cut it short.
func Answer(prompt string) string {
	sum := checksum(prompt)
	return fmt.Sprintf("Simulated answer %016x. %s", sum, sentences[mix(sum)%uint64(len(sentences))])
}

// Checksum is 16 hexadecimal digits that tell one text from another (FNV-1a of
// 64 bits: no protection against whoever wants a collision).
func Checksum(text string) string {
	return fmt.Sprintf("%016x", checksum(text))
}

func checksum(text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	return h
}

// dimensions is the length of an embedding: enough to tell texts apart, short
// enough that thousands of answers are cheap to read.
const dimensions = 8

// Embedding is the vector for a text: always the same, of length one.
func Embedding(text string) []float32 {
	sum, norm := checksum(text), 0.0
	v := make([]float32, dimensions)
	for i := range v {
		sum = mix(sum)
		v[i] = float32(float64(sum>>11)/(1<<52) - 1)
		norm += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

// base64Floats is the encoding that some clients ask for by default: float32,
// little endian.
func base64Floats(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// tokensOf estimates tokens from characters at four to one, the figure OpenAI
// gives for English and charges by beforehand.
func tokensOf(chars int) int { return (chars + 3) / 4 }
