package parts

// bitSet is a set of numbers from 0 on, with a bit for each up to its greatest. The zero value is empty.
type bitSet struct {
	words []uint64
	len   int
}

// add adds n, and reports whether n was not in the set yet.
func (s *bitSet) add(n int) bool {
	if s.has(n) {
		return false
	}
	if need := n/64 + 1; need > len(s.words) {
		s.words = append(s.words, make([]uint64, need-len(s.words))...)
	}
	s.words[n/64] |= 1 << (n % 64)
	s.len++
	return true
}

func (s *bitSet) has(n int) bool {
	return n >= 0 && n/64 < len(s.words) && s.words[n/64]&(1<<(n%64)) != 0
}
