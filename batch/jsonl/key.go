package jsonl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/headrace/headrace/provider/rawjson"
)

// keySize is how much of the SHA-256 is kept, in bytes. Among ten million
// different requests two share 128 bits with a chance of about 10⁻²⁵.
const keySize = 16

type keySum [keySize]byte

func (k keySum) String() string { return hex.EncodeToString(k[:]) }

// Key is what ties a result to the question: 32 hex digits made of the endpoint,
// the body in canonical form, and the id. The order of a body's keys and the
// white space in it do not count. Numbers and strings count as they are written:
// 1 and 1.0 differ, and so do "é" and "\u00e9", since to take two
// questions for one would lose an answer and the reverse only buys one again.
//
// body must be valid JSON. A line without an id of its own is keyed by how many
// lines like it came before instead (its Request.Key says so), so that it keeps
// its key when lines above it come and go.
func Key(endpoint string, body []byte, id string) string {
	return new(canonizer).given(endpoint, body, []byte(id)).String()
}

// canonizer holds what the making of keys needs again and again.
type canonizer struct {
	out     []byte
	sorted  []byte
	members []span
}

// span is where a member of an object lies in out.
type span struct{ start, value, end int }

// given is the key of a line that has an id of its own.
func (c *canonizer) given(endpoint string, body, id []byte) keySum {
	c.question(endpoint, body, 'i')
	c.out = append(c.out, id...)
	return c.sum()
}

// question begins a key of three parts. None of the first two can hold a raw line
// feed, so no two different triples read the same.
func (c *canonizer) question(endpoint string, body []byte, tag byte) {
	c.out = append(append(c.out[:0], endpoint...), '\n')
	c.value(body, rawjson.SkipSpace(body, 0))
	c.out = append(c.out, '\n', tag)
}

func (c *canonizer) sum() keySum {
	sum := sha256.Sum256(c.out)
	return keySum(sum[:keySize])
}

// bad is the key of a line that is no request. No endpoint begins with a line feed.
func (c *canonizer) bad(text []byte) keySum {
	c.out = append(append(c.out[:0], "\nbad\n"...), text...)
	return c.sum()
}

// nth is the key of the n-th line (from 0) that asks this without an id.
func (c *canonizer) nth(endpoint string, body []byte, n int) keySum {
	c.question(endpoint, body, 'n')
	c.out = strconv.AppendInt(c.out, int64(n), 10)
	return c.sum()
}

// value appends the canonical form of the value at i and gives the index after
// it. It calls itself once a level; valid JSON nests at most rawjson.MaxNesting deep.
func (c *canonizer) value(b []byte, i int) int {
	switch b[i] {
	case '{':
		return c.object(b, i)
	case '[':
		return c.array(b, i)
	}
	end := rawjson.SkipValue(b, i)
	c.out = append(c.out, b[i:end]...)
	return end
}

func (c *canonizer) array(b []byte, i int) int {
	c.out = append(c.out, '[')
	for i = rawjson.SkipSpace(b, i+1); b[i] != ']'; {
		i = rawjson.SkipSpace(b, c.value(b, i))
		if b[i] == ',' {
			c.out = append(c.out, ',')
			i = rawjson.SkipSpace(b, i+1)
		}
	}
	c.out = append(c.out, ']')
	return i + 1
}

func (c *canonizer) object(b []byte, i int) int {
	first := len(c.members)
	c.out = append(c.out, '{')
	start := len(c.out)
	for i = rawjson.SkipSpace(b, i+1); b[i] != '}'; {
		i = rawjson.SkipSpace(b, c.member(b, i))
		if b[i] == ',' {
			c.out = append(c.out, ',')
			i = rawjson.SkipSpace(b, i+1)
		}
	}
	c.sort(c.members[first:], start)
	c.members = c.members[:first]
	c.out = append(c.out, '}')
	return i + 1
}

func (c *canonizer) member(b []byte, i int) int {
	m := span{start: len(c.out)}
	end := rawjson.SkipString(b, i)
	c.out = append(append(c.out, b[i:end]...), ':')
	m.value = len(c.out)
	i = c.value(b, rawjson.SkipSpace(b, rawjson.SkipSpace(b, end)+1))
	m.end = len(c.out)
	c.members = append(c.members, m)
	return i
}

// sort puts the members that lie in out from start on into the order of their
// names. Of a name that comes twice, the order is kept: to servers it has a meaning.
func (c *canonizer) sort(ms []span, start int) {
	byName := func(x, y span) int {
		return bytes.Compare(c.out[x.start:x.value], c.out[y.start:y.value])
	}
	if slices.IsSortedFunc(ms, byName) {
		return
	}
	slices.SortStableFunc(ms, byName)
	c.sorted = c.sorted[:0]
	for _, m := range ms {
		c.sorted = append(append(c.sorted, c.out[m.start:m.end]...), ',')
	}
	copy(c.out[start:], c.sorted[:len(c.sorted)-1])
}
