package index

import (
	"encoding/binary"
	"errors"
	"iter"
)

// step is a stretch of consecutive lines: chunks begin and end where steps do.
type step struct {
	lines  int
	bytes  int64
	filled int // lines, of a CSV rows, that are not blank
}

func (s *step) add(o step) {
	s.lines += o.lines
	s.bytes += o.bytes
	s.filled += o.filled
}

// steps are those of a stretch, one behind the other: three uvarints each, some four bytes.
type steps []byte

func (s *steps) append(one step) {
	for _, n := range []uint64{uint64(one.lines), uint64(one.bytes), uint64(one.filled)} {
		*s = binary.AppendUvarint(*s, n)
	}
}

var errSteps = errors.New("its steps cannot be read")

// all yields the steps in order; the last thing is an error if they are not what was appended.
func (s steps) all() iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		for rest := []byte(s); len(rest) > 0; {
			var n [3]uint64
			for i := range n {
				size := 0
				if n[i], size = binary.Uvarint(rest); size <= 0 {
					yield(step{}, errSteps)
					return
				}
				rest = rest[size:]
			}
			if !yield(step{int(n[0]), int64(n[1]), int(n[2])}, nil) {
				return
			}
		}
	}
}
