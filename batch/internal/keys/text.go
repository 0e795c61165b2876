package keys

import (
	"encoding/binary"
	"hash/maphash"
)

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
