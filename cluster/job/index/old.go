package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// What stands here reads plans and indexes of format 1, so that a job which was cut by an older program goes on.

// oldIndex is what the index of a segment is called.
func oldIndex(name string, segment int) string {
	return fmt.Sprintf("%s%06d", job.IndexFolder(name), segment)
}

// inputs is how many inputs a plan has. One of format 1 does not say it: its last line that is not blank does.
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

// table says where the marks of the chunks of a segment are.
type table struct {
	Format  int      `json:"format"`
	Objects []string `json:"objects"`
	// Blocks has two uvarints for each chunk: by how many objects its block is behind that of
	// the chunk before, and how many bytes it has. In an object blocks follow one another.
	Blocks []byte `json:"blocks"`
}

// oldMarks says of each chunk in hand which object its marks are in, and where; "" if it has none.
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
