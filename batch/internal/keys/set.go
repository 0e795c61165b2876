package keys

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// shelfBits is the number of bits of a hash that choose a shelf. 16,384 shelves cost 400 KB
// at most. With ten million entries a shelf has some 600; shifting them to make room is a
// copy of two kilobytes.
const shelfBits = 14

// Set is a set of hashes that takes little more than their bytes: sorted shelves, each a
// slice of entries of width bytes. The first 14 bits of a hash choose the shelf and are not
// stored. So a width of 8 tells 78 bits apart, one of 6 tells 62.
//
//	hash  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒ │ ░░░░░░░░░░░░░░░░░░░░░ │ the rest is not kept
//	      shelf, 14 bits   entry, width bytes
type Set struct {
	Width   int // bytes of an entry, 1 to 8
	shelves [][]byte
	len     int
}

// shelfAndEntry splits a hash into the number of its shelf and its entry there.
func shelfAndEntry(sum Sum) (shelf int, entry [8]byte) {
	high, low := binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])
	binary.BigEndian.PutUint64(entry[:], high<<shelfBits|low>>(64-shelfBits))
	return int(high >> (64 - shelfBits)), entry
}

// find returns the offset at which the entry stands, or would stand.
func (s *Set) find(shelf []byte, entry []byte) (at int, found bool) {
	low, high := 0, len(shelf)/s.Width
	for low < high {
		mid := (low + high) / 2
		switch bytes.Compare(shelf[mid*s.Width:(mid+1)*s.Width], entry) {
		case 0:
			return mid * s.Width, true
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low * s.Width, false
}

// Has reports whether sum is in the set.
func (s *Set) Has(sum Sum) bool {
	if s.len == 0 {
		return false
	}
	shelf, entry := shelfAndEntry(sum)
	_, found := s.find(s.shelves[shelf], entry[:s.Width])
	return found
}

// Len returns the number of entries.
func (s *Set) Len() int { return s.len }

// Add adds sum, and reports whether it was not there yet.
func (s *Set) Add(sum Sum) bool {
	if s.shelves == nil {
		s.shelves = make([][]byte, 1<<shelfBits)
	}
	n, entry := shelfAndEntry(sum)
	shelf := s.shelves[n]
	at, found := s.find(shelf, entry[:s.Width])
	if found {
		return false
	}
	if len(shelf)+s.Width > cap(shelf) {
		shelf = growShelf(shelf, s.Width+len(shelf)/16)
	}
	shelf = shelf[:len(shelf)+s.Width]
	copy(shelf[at+s.Width:], shelf[at:])
	copy(shelf[at:], entry[:s.Width])
	s.shelves[n] = shelf
	s.len++
	return true
}

// growShelf returns a copy of a shelf that has room for n bytes more. It adds only the room that the allocator
// would waste anyway. The doubling of append would cost what a table saves.
func growShelf(shelf []byte, n int) []byte {
	grown := append([]byte(nil), make([]byte, len(shelf)+n)...)
	return grown[:copy(grown, shelf)]
}

// Hasher makes hashes of texts, for sets that are not kept. They are quick, and differ from
// Hasher to Hasher, so that two texts that share one do not in another process.
type Hasher struct{ seeds [2]maphash.Seed }

// NewHasher makes a Hasher.
func NewHasher() Hasher { return Hasher{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}} }

// Text returns the hash of a text.
func (h *Hasher) Text(text string) (sum Sum) {
	binary.LittleEndian.PutUint64(sum[:8], maphash.String(h.seeds[0], text))
	binary.LittleEndian.PutUint64(sum[8:], maphash.String(h.seeds[1], text))
	return sum
}
