package jsonl

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"
)

// BytesPerItem bounds what the reader remembers of each item, to tell an id used
// twice and to number lines that ask the same without an id: one entry of 20
// bytes in a map that is at least 7/16 full, and its control byte.
const BytesPerItem = 48

// idSet knows which line gave which id. It keeps 128 bits of a hash, not the id:
// two of ten million ids share them with a chance of 10⁻²⁵.
type idSet struct {
	seeds [2]maphash.Seed
	given map[[16]byte]uint32
	bare  []uint64 // a bit for each line that gave no id, and so bears LineID
}

func newIDSet() *idSet {
	return &idSet{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		given: make(map[[16]byte]uint32),
	}
}

func (s *idSet) hash(id string) (h [16]byte) {
	binary.LittleEndian.PutUint64(h[:8], maphash.String(s.seeds[0], id))
	binary.LittleEndian.PutUint64(h[8:], maphash.String(s.seeds[1], id))
	return h
}

// give notes that line gave id. If the id is taken it changes nothing and tells
// by which line.
func (s *idSet) give(id string, line int) (by int, taken bool) {
	h := s.hash(id)
	if first, ok := s.given[h]; ok {
		return int(first), true
	}
	if n, ok := lineOfID(id); ok && s.isBare(n) {
		return n, true
	}
	s.given[h] = uint32(line)
	return 0, false
}

// generate notes that line gave no id. If its LineID is taken it tells by which line.
func (s *idSet) generate(line int) (by int, taken bool) {
	if first, ok := s.given[s.hash(LineID(line))]; ok {
		return int(first), true
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

// lineOfID is LineID undone: false if id is not what LineID gives for any line.
func lineOfID(id string) (int, bool) {
	digits, ok := strings.CutPrefix(id, "line-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && LineID(n) == id
}
