package prompts

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch/internal/keys"
)

// BytesPerItem bounds the reader's memory for each item: 6 bytes, the room to grow in, and
// a bit. With it the reader detects an id used twice, and numbers equal lines without an
// id. It is the mean of many; a fixed 600 KB come on top.
const BytesPerItem = 7.5

// idWidth stores 62 bits of a hash: among ten million ids two different ones are taken for
// one with a chance of 10⁻⁵. The hash has another seed in each process, so that another try
// tells them apart.
const idWidth = 6

// NamedIDs is the number of ids that the reader remembers with their line, so that a
// complaint names both lines. They are the first ids of the input and take 200 KB.
// FirstLines finds the lines of the others.
const NamedIDs = 1 << 12

// idSet knows which ids are taken.
type idSet struct {
	hash  keys.Hasher
	given keys.Set
	first map[keys.Sum]int // the lines of the first ids
	bare  []uint64         // a bit for each line that gave no id, and so has its LineID
}

func newIDSet() *idSet {
	return &idSet{
		hash:  keys.NewHasher(),
		given: keys.Set{Width: idWidth},
		first: make(map[keys.Sum]int),
	}
}

// give records that line gave id. If the id is taken, give changes nothing and returns the
// line that has it, 0 if that is not remembered.
func (s *idSet) give(id string, line int) (by int, taken bool) {
	if n, ok := lineOfID(id); ok && s.isBare(n) {
		return n, true
	}
	h := s.hash.Text(id)
	if !s.given.Add(h) {
		return s.first[h], true
	}
	if len(s.first) < NamedIDs {
		s.first[h] = line
	}
	return 0, false
}

// generate records that line gave no id and gets id, its LineID. If that is taken, generate
// returns the line that has it, 0 if that is not remembered.
func (s *idSet) generate(id string, line int) (by int, taken bool) {
	if s.given.Len() > 0 {
		if h := s.hash.Text(id); s.given.Has(h) {
			return s.first[h], true
		}
	}
	for len(s.bare) <= line/64 {
		s.bare = append(s.bare, 0)
	}
	s.bare[line/64] |= 1 << (line % 64)
	return 0, false
}

func (s *idSet) isBare(line int) bool {
	return line/64 < len(s.bare) && s.bare[line/64]&(1<<(line%64)) != 0
}

// lineOfID is the inverse of LineID. It returns false if id is not the LineID of any line.
func lineOfID(id string) (int, bool) {
	digits, ok := strings.CutPrefix(id, "line-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && LineID(n) == id
}

// tally counts how often the same was asked, in a table of what was asked at least n times.
// It keeps 6 bytes for each time, however the times are spread.
type tally struct{ seen keys.Set }

// count returns how often sum was counted before, and counts it.
func (t *tally) count(sum keys.Sum) int {
	if t.seen.Add(nth(sum, 0)) {
		return 0 // the usual case
	}
	low, high := 1, 2 // asked at least low times, and (in the end) less than high
	for t.seen.Has(nth(sum, high-1)) {
		low, high = high, 2*high
	}
	for low+1 < high {
		if mid := (low + high) / 2; t.seen.Has(nth(sum, mid-1)) {
			low = mid
		} else {
			high = mid
		}
	}
	t.seen.Add(nth(sum, low))
	return low
}

// nth returns another hash of sum for each n: odd multipliers mix all its bits.
func nth(sum keys.Sum, n int) keys.Sum {
	high, low := binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])
	binary.BigEndian.PutUint64(sum[:8], high+uint64(n)*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint64(sum[8:], low^uint64(n)*0xC2B2AE3D27D4EB4F)
	return sum
}
