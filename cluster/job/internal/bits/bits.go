// Package bits is sets of small numbers.
//
// It promises that a set takes a bit for each number up to the greatest that is in it.
//
//	3, 5 ──▶ …0010 1000
package bits

import (
	"iter"
	"math/bits"
)

// Set is a set of numbers from 0 on. The zero value is empty.
type Set struct {
	words []uint64
	len   int
}

// Add reports whether n was not there yet.
func (s *Set) Add(n int) bool {
	if s.Has(n) {
		return false
	}
	if need := n/64 + 1; need > len(s.words) {
		s.words = append(s.words, make([]uint64, need-len(s.words))...)
	}
	s.words[n/64] |= 1 << (n % 64)
	s.len++
	return true
}

// Has reports whether n is there.
func (s *Set) Has(n int) bool {
	return n >= 0 && n/64 < len(s.words) && s.words[n/64]&(1<<(n%64)) != 0
}

// Len is how many there are.
func (s *Set) Len() int { return s.len }

// All yields them, the least first.
func (s *Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}
