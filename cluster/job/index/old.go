package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// This file reads plans and indexes of format 1, so that a job which an older program has cut goes on.

// oldIndex returns the name of a segment's index.
func oldIndex(name string, segment int) string {
	return fmt.Sprintf("%s%06d", job.IndexFolder(name), segment)
}

// inputs returns the number of a plan's inputs. A plan of format 1 does not hold it: its last line that is not blank shows it.
func (p *Plan) inputs(ctx context.Context, s store.Store) (int, error) {
	if p.Inputs > 0 || len(p.Segments) == 0 {
		return p.Inputs, nil
	}
	idx, err := p.loadIndex(ctx, s, len(p.Segments)-1)
	if err != nil || len(idx.Stretches) == 0 {
		return 0, err
	}
	return idx.Stretches[len(idx.Stretches)-1].Input + 1, nil
}

// table holds the places of the marks of a segment's chunks.
type table struct {
	Format  int      `json:"format"`
	Objects []string `json:"objects"`
	// Blocks has two uvarints for each chunk: the number of objects from the block of the chunk before to
	// its own, and the size of its block in bytes. In an object blocks follow one another.
	Blocks []byte `json:"blocks"`
}

// oldMarks returns, for each chunk at hand, the object of its marks and their place in it; "" if it has none.
func (c *Chunks) oldMarks(ctx context.Context, name string) (all []job.Chunk, err error) {
	var t table
	if err := load(ctx, c.store, name, MaxIndex, &t); err != nil {
		return nil, err
	}
	object, offset := 0, int64(0)
	for rest := t.Blocks; len(rest) > 0; {
		var n [2]int
		for i := range n {
			v, size := binary.Uvarint(rest)
			if size <= 0 {
				return nil, errMarks
			}
			n[i], rest = int(v), rest[size:]
		}
		if object += n[0]; n[0] > 0 {
			offset = 0
		}
		m := job.Chunk{MarksBytes: int64(n[1])}
		switch {
		case n[1] == 0:
		case object >= len(t.Objects):
			return nil, errors.New("a block of marks is in an object that is not there")
		default:
			m.Marks, m.MarksOffset = t.Objects[object], offset
		}
		offset += int64(n[1])
		all = append(all, m)
	}
	if len(all) != len(c.spans) {
		err = fmt.Errorf("%s is of %d chunks, there are %d", name, len(all), len(c.spans))
	}
	return all, err
}
