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
	filled int   // lines (rows in a CSV) that are not blank
	marks  int64 // bytes of its marks
	marked bool  // a line has one
}

func (s *step) add(o step) {
	s.lines += o.lines
	s.bytes += o.bytes
	s.filled += o.filled
	s.marks += o.marks
	s.marked = s.marked || o.marked
}

// steps are the steps of a stretch, one behind the other: four uvarints each, some five bytes. The last number is
// twice the bytes of its marks, plus one if a line has a mark.
type steps []byte

func (s *steps) append(one step) {
	marks := uint64(one.marks) << 1
	if one.marked {
		marks |= 1
	}
	for _, n := range []uint64{uint64(one.lines), uint64(one.bytes), uint64(one.filled), marks} {
		*s = binary.AppendUvarint(*s, n)
	}
}

var errSteps = errors.New("its steps cannot be read")

// all yields the steps in order. They end with an error if they differ from what was appended. In an index of
// format 1 a step has three numbers.
func (s steps) all(format int) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		for rest := []byte(s); len(rest) > 0; {
			var n [4]uint64
			for i := range min(2+format, len(n)) {
				size := 0
				if n[i], size = binary.Uvarint(rest); size <= 0 {
					yield(step{}, errSteps)
					return
				}
				rest = rest[size:]
			}
			if !yield(step{int(n[0]), int64(n[1]), int(n[2]), int64(n[3] >> 1), n[3]&1 > 0}, nil) {
				return
			}
		}
	}
}
