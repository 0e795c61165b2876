package jsonl

import (
	"bytes"
	"encoding/binary"
)

// shelfBits is how much of a hash chooses a shelf: 16,384 of them cost 400 KB at
// most, and with ten million entries a shelf has some 600, whose shifting to make
// room is a copy of two kilobytes.
const shelfBits = 14

// table is a set of hashes that takes little more than their bytes: sorted shelves,
// each a slice of entries of width bytes. The first 14 bits of a hash choose the
// shelf and are not stored. So a width of 8 tells 78 bits apart, one of 6 tells 62.
//
//	hash  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒ │ ░░░░░░░░░░░░░░░░░░░░░ │ the rest is not kept
//	      shelf, 14 bits   entry, width bytes
type table struct {
	width   int
	shelves [][]byte
	len     int
}

// place gives the shelf of a hash and what would stand there.
func place(sum keySum) (shelf int, entry [8]byte) {
	high, low := binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])
	binary.BigEndian.PutUint64(entry[:], high<<shelfBits|low>>(64-shelfBits))
	return int(high >> (64 - shelfBits)), entry
}

// find gives the offset at which the entry stands, or would.
func (t *table) find(shelf []byte, entry []byte) (at int, found bool) {
	low, high := 0, len(shelf)/t.width
	for low < high {
		mid := (low + high) / 2
		switch bytes.Compare(shelf[mid*t.width:(mid+1)*t.width], entry) {
		case 0:
			return mid * t.width, true
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low * t.width, false
}

func (t *table) has(sum keySum) bool {
	if t.len == 0 {
		return false
	}
	shelf, entry := place(sum)
	_, found := t.find(t.shelves[shelf], entry[:t.width])
	return found
}

// add reports whether sum was not there yet.
func (t *table) add(sum keySum) bool {
	if t.shelves == nil {
		t.shelves = make([][]byte, 1<<shelfBits)
	}
	n, entry := place(sum)
	shelf := t.shelves[n]
	at, found := t.find(shelf, entry[:t.width])
	if found {
		return false
	}
	if len(shelf)+t.width > cap(shelf) {
		shelf = roomier(shelf, t.width+len(shelf)/16)
	}
	shelf = shelf[:len(shelf)+t.width]
	copy(shelf[at+t.width:], shelf[at:])
	copy(shelf[at:], entry[:t.width])
	t.shelves[n] = shelf
	t.len++
	return true
}

// roomier copies a shelf to where it has room for n bytes more, and no more but for
// what the allocator would waste: append's doubling would cost what a table saves.
func roomier(shelf []byte, n int) []byte {
	grown := append([]byte(nil), make([]byte, len(shelf)+n)...)
	return grown[:copy(grown, shelf)]
}
