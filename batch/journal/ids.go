package journal

import "github.com/headrace/headrace/batch/internal/keys"

// IDBytesPerItem bounds the memory of an IDSet for each id: 6 bytes and the room to grow
// in. It is the mean of many; a fixed 400 KB come on top.
const IDBytesPerItem = 7.5

// idWidth stores 62 bits of a hash. Among ten million ids, two different ones are taken for
// one with a chance of 10⁻⁵; then one gets another name without need.
const idWidth = 6

// IDSet is a set of the custom ids that stand in an output.
type IDSet struct {
	hash keys.Hasher
	ids  keys.Set
}

func newIDSet() *IDSet { return &IDSet{keys.NewHasher(), keys.Set{Width: idWidth}} }

// Add adds the id, and reports whether it was not there yet.
func (s *IDSet) Add(id string) bool { return s.ids.Add(s.hash.Text(id)) }

// Has reports whether the id is there.
func (s *IDSet) Has(id string) bool { return s.ids.Has(s.hash.Text(id)) }

// Len returns the number of ids.
func (s *IDSet) Len() int { return s.ids.Len() }
