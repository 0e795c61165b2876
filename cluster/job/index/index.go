package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Index is what is known of a segment once it was read through.
type Index struct {
	Format    int         `json:"format"` // that of the job's record
	Segment   int         `json:"n"`
	Stretches []Stretched `json:"stretches"`

	Lines          int `json:"lines"`  // blank ones included
	Filled         int `json:"filled"` // lines, of a CSV rows, that are not blank
	Items          int `json:"items"`  // requests
	Bad            int `json:"bad"`    // lines that are none, but for ids that other lines have
	Untranslatable int `json:"untranslatable"`

	// Complaints are the first bad lines, and Foreign the first untranslatable ones,
	// prompts.MaxComplaints of each.
	Complaints []Complaint `json:"complaints,omitempty"`
	Foreign    []Complaint `json:"foreign,omitempty"`

	Traces []Run `json:"traces,omitempty"`
}

// Stretched is what is known of one stretch.
type Stretched struct {
	Stretch
	Begin int64 `json:"begin"` // where in the object its first line begins
	Lines int   `json:"lines"`
	Steps steps `json:"steps"`
}

// Run names an object that holds sorted traces, so many of each prompts.TraceKind.
type Run struct {
	Name  string          `json:"name"`
	Kinds [traceKinds]int `json:"kinds"`
}

func (r *Run) len() (n int) {
	for _, k := range r.Kinds {
		n += k
	}
	return n
}

// Complaint is what is wrong with one line, as the index of its segment has it.
type Complaint struct {
	Stretch int    `json:"stretch"`
	Line    int    `json:"line"` // of the stretch, from 0
	Reason  string `json:"reason"`
	Advice  string `json:"advice"`
	Foreign bool   `json:"foreign,omitempty"` // it is good, and cannot be translated
}

// MaxIndex is the most bytes of an index, but for its traces: of 10⁷ lines it has one.
const MaxIndex = 64 << 20

func indexName(name string, segment int) string {
	return fmt.Sprintf("%s%06d", job.IndexFolder(name), segment)
}

// Write reads a segment through and writes its index, unless somebody else was first: it gives
// what is there then. who is in the names of what it writes beside it, and new with each try. The
// error tells why the segment cannot be read, such as store.ErrChanged.
func (s *Source) Write(ctx context.Context, seg Segment, who string) (Index, error) {
	idx, err := LoadIndex(ctx, s.Store, seg.Job, seg.Number)
	if !errors.Is(err, store.ErrMissing) {
		return idx, err
	}
	w := &scan{
		Source: s, ctx: ctx,
		idx:    Index{Format: job.FormatOf(s.Record.Format), Segment: seg.Number},
		traces: runs{ctx: ctx, store: s.Store, name: indexName(seg.Job, seg.Number) + ".traces-" + who, most: cmp.Or(s.traces, tracesAtOnce)},
	}
	if err := w.all(seg); err != nil {
		w.traces.remove()
		return w.idx, fmt.Errorf("index: segment %d of %s: %w", seg.Number, seg.Job, err)
	}
	switch err := w.create(seg); {
	case errors.Is(err, store.ErrExists):
		w.traces.remove()
		return LoadIndex(ctx, s.Store, seg.Job, seg.Number)
	case err != nil: // it may have been written: then it needs its traces
		return w.idx, fmt.Errorf("index: segment %d of %s: %w", seg.Number, seg.Job, err)
	}
	return w.idx, nil
}

// all reads a segment through.
func (w *scan) all(seg Segment) error {
	for _, st := range seg.Stretches {
		if err := w.names(st.Input, st.Piece); err != nil {
			return err
		}
		if err := w.stretch(st); err != nil {
			return fault(w.inputOf(st), err)
		}
	}
	err := w.traces.flush()
	w.idx.Traces = w.traces.all
	return err
}

func (w *scan) create(seg Segment) error {
	text, err := json.Marshal(&w.idx)
	if err != nil {
		return err
	}
	return store.CreateBytes(w.ctx, w.Store, indexName(seg.Job, seg.Number), text)
}

// LoadIndex reads the index of a segment: store.ErrMissing if it was not written yet.
func LoadIndex(ctx context.Context, s store.Store, name string, segment int) (Index, error) {
	var idx Index
	err := load(ctx, s, indexName(name, segment), MaxIndex, &idx)
	switch {
	case err != nil:
	case idx.Format > job.RecordFormat:
		err = fmt.Errorf("index: read %s: %w", indexName(name, segment), job.ErrNewer)
	case idx.Segment != segment:
		err = fmt.Errorf("index: read %s: it is of segment %d", indexName(name, segment), idx.Segment)
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

// Indexed tells which segments have their index.
func Indexed(ctx context.Context, s store.Store, name string) (segments []int, err error) {
	for o, err := range s.List(ctx, job.IndexFolder(name), "") {
		if err != nil {
			return nil, fmt.Errorf("index: %w", err)
		}
		var n int
		if _, err := fmt.Sscanf(o.Name[len(job.IndexFolder(name)):], "%d", &n); err == nil && indexName(name, n) == o.Name {
			segments = append(segments, n)
		}
	}
	return segments, nil
}

// complaintOf is what is wrong with a line that is no request.
func complaintOf(bad *prompts.LineError, stretch, line int) Complaint {
	return Complaint{
		Stretch: stretch, Line: line, Reason: bad.Reason, Advice: bad.Advice,
		Foreign: errors.Is(bad, prompts.ErrUntranslatable),
	}
}
