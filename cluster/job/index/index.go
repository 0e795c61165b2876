package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Format is the version of the form of plans and indexes. Format 2 has one marks object for each segment, and one pass
// writes it.
const Format = 2

// Index describes a segment: stretches that follow one another in the job's inputs.
type Index struct {
	Format    int         `json:"format"`
	Segment   int         `json:"n"` // from 0, in the order of the inputs
	Stretches []Stretched `json:"stretches"`
	Marks     string      `json:"marks,omitempty"` // the object with the marks of its lines; "" if no line has one
}

// Stretched describes one stretch: lines of one object that follow one another.
type Stretched struct {
	Input int   `json:"input"`           // of Record.Inputs
	Piece int   `json:"piece,omitempty"` // of Input.Objects
	Begin int64 `json:"begin"`           // where in the object its first line begins
	Lines int   `json:"lines"`
	Steps steps `json:"steps"`
}

// MaxIndex bounds the bytes of an index.
const MaxIndex = 64 << 20

// loadIndex reads the index of a segment.
func (p *Plan) loadIndex(ctx context.Context, s store.Store, segment int) (Index, error) {
	var idx Index
	name := cmp.Or(p.Segments[segment].Index, oldIndex(p.Job, segment))
	err := load(ctx, s, name, MaxIndex, &idx)
	switch {
	case err != nil:
	case idx.Format > Format:
		err = fmt.Errorf("index: read %s: %w", name, job.ErrNewer)
	case idx.Segment != segment:
		err = fmt.Errorf("index: read %s: it is of segment %d", name, idx.Segment)
	}
	return idx, err
}

// load reads an object of JSON.
func load(ctx context.Context, s store.Store, name string, most int64, into any) error {
	text, err := store.ReadAll(ctx, s, name, most)
	if err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(into); err != nil {
		return fmt.Errorf("index: read %s: %w", name, err)
	}
	return nil
}

func save(ctx context.Context, s store.Store, name string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return store.CreateBytes(ctx, s, name, text)
}
