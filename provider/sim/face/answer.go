package face

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

// Answer returns the simulated provider's answer to a prompt: always the same, with
// the prompt's [Checksum] in it. It is plain ASCII of at most 128 characters.
// A call's max_tokens may cut it short.
func Answer(prompt string) string {
	sum := Sum(prompt)
	return fmt.Sprintf("Simulated answer %016x. %s", sum, sentences[Mix(sum)%uint64(len(sentences))])
}

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
