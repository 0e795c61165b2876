package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/headrace/headrace/provider/rawjson"
)

// Size is the length of a key in bytes, the first of a SHA-256. Among ten million different
// requests two share 128 bits with a chance of about 10⁻²⁵.
const Size = 16

// Sum is a key, or any other hash of that size.
type Sum [Size]byte

// String returns the key as result files have it: 32 hex digits.
func (k Sum) String() string { return hex.EncodeToString(k[:]) }

// Parse reads what String has written.
func Parse(text []byte) (sum Sum, ok bool) {
	if len(text) != hex.EncodedLen(Size) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], text)
	return sum, err == nil
}

// Maker makes keys, and reuses the memory for that. The zero value is ready. A Maker
// belongs to one goroutine.
type Maker struct {
	out     []byte
	sorted  []byte
	members []span
}

// span is the place of an object's member in out.
type span struct{ start, value, end int }

// Given returns the key of a line that has an id of its own.
func (c *Maker) Given(endpoint string, body, id []byte) Sum {
	c.beginKey(endpoint, body, 'i')
	c.out = append(c.out, id...)
	return c.sum()
}

// beginKey begins a key of three parts. The first two cannot hold a raw line feed, so no two different triples read
// the same.
func (c *Maker) beginKey(endpoint string, body []byte, tag byte) {
	c.out = append(append(c.out[:0], endpoint...), '\n')
	c.value(body, rawjson.SkipSpace(body, 0))
	c.out = append(c.out, '\n', tag)
}

func (c *Maker) sum() Sum {
	sum := sha256.Sum256(c.out)
	return Sum(sum[:Size])
}

// Bad returns the key of a line that is not a request. No endpoint begins with a line feed.
func (c *Maker) Bad(text []byte) Sum {
	c.out = append(append(c.out[:0], "\nbad\n"...), text...)
	return c.sum()
}

// ID returns the hash of an id, for sets that are kept. No endpoint begins with a line
// feed.
func (c *Maker) ID(id []byte) Sum {
	c.out = append(append(c.out[:0], "\nid\n"...), id...)
	return c.sum()
}

// Nth returns the key of the n-th line (from 0) that asks this without an id.
func (c *Maker) Nth(endpoint string, body []byte, n int) Sum {
	c.beginKey(endpoint, body, 'n')
	c.out = strconv.AppendInt(c.out, int64(n), 10)
	return c.sum()
}

// value appends the canonical form of the value at i and returns the index after it. It
// calls itself once a level; valid JSON nests at most rawjson.MaxNesting deep.
func (c *Maker) value(b []byte, i int) int {
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

// array writes the array that begins at b[i], without white space, and returns the index after
// it. The order of its elements stays.
func (c *Maker) array(b []byte, i int) int {
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

// object writes the object that begins at b[i], its members in the order of their names, and returns
// where it ends. Objects in it share the stack of members: each takes off what it has put on.
func (c *Maker) object(b []byte, i int) int {
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

// member writes one member, notes its place in out, and returns where it ends in b.
func (c *Maker) member(b []byte, i int) int {
	m := span{start: len(c.out)}
	end := rawjson.SkipString(b, i)
	c.out = append(append(c.out, b[i:end]...), ':')
	m.value = len(c.out)
	i = c.value(b, rawjson.SkipSpace(b, rawjson.SkipSpace(b, end)+1))
	m.end = len(c.out)
	c.members = append(c.members, m)
	return i
}

// sort puts the members that lie in out from start on into the order of their names. It
// keeps the order of a name that comes twice: to servers it has a meaning.
func (c *Maker) sort(members []span, start int) {
	byName := func(x, y span) int {
		return bytes.Compare(c.out[x.start:x.value], c.out[y.start:y.value])
	}
	if slices.IsSortedFunc(members, byName) {
		return
	}
	slices.SortStableFunc(members, byName)
	c.sorted = c.sorted[:0]
	for _, m := range members {
		c.sorted = append(append(c.sorted, c.out[m.start:m.end]...), ',')
	}
	copy(c.out[start:], c.sorted[:len(c.sorted)-1])
}
