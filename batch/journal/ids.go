package journal

import "github.com/headrace/headrace/batch/internal/keys"

// IDBytesPerItem bounds what an IDSet remembers of each id: 6 bytes and the room to grow
// in. It is the mean of many; a fixed 400 KB come to it.
const IDBytesPerItem = 7.5

// idWidth makes 62 bits of a hash: among ten million ids two different ones are taken for
// one with a chance of 10⁻⁵, and then one gets another name without need.
const idWidth = 6

// IDSet is a set of the custom ids that stand in an output.
type IDSet struct {
	hash keys.Hasher
	ids  keys.Set
}

func newIDSet() *IDSet { return &IDSet{keys.NewHasher(), keys.Set{Width: idWidth}} }

// Add reports whether the id was not there yet.
func (s *IDSet) Add(id string) bool { return s.ids.Add(s.hash.Text(id)) }

// Has reports whether the id is there.
func (s *IDSet) Has(id string) bool { return s.ids.Has(s.hash.Text(id)) }

// Len is how many ids there are.
func (s *IDSet) Len() int { return s.ids.Len() }
