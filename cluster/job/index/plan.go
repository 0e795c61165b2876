package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Plan says how a job's inputs are cut into chunks, or why nothing of it is to be called.
type Plan struct {
	Format   int       `json:"format"`
	Job      string    `json:"job"`
	Segments []Planned `json:"segments"`
	// Inputs is how many inputs it has; 0 in format 1, where the last segment says it.
	Inputs int `json:"inputs,omitempty"`
	// ChunkLines is how many lines a chunk has, blank ones not counted, or fewer.
	ChunkLines int `json:"chunk_lines"`

	Lines          int `json:"lines"`
	Items          int `json:"items"`
	Bad            int `json:"bad"` // lines that are no request, skipped if the plan is not refused
	Untranslatable int `json:"untranslatable"`
	Chunks         int `json:"chunks"`

	// Faults are the first lines for which nothing is called, prompts.MaxComplaints of AllFaults.
	Faults    []Fault `json:"faults,omitempty"`
	AllFaults int     `json:"all_faults,omitempty"`
}

// Planned is one segment, as part of the whole.
type Planned struct {
	First int `json:"first"` // how many lines of the job are before it
	// Above is how many lines are in the files before the one that its first stretch is of.
	Above      int    `json:"above"`
	FirstChunk int    `json:"first_chunk"`
	Chunks     int    `json:"chunks"`
	Index      string `json:"index,omitempty"` // the object that is its index; "" in format 1, see oldIndex
	Marks      string `json:"marks,omitempty"` // in format 1 the object that says where the marks of its chunks are
	Refused    bool   `json:"refused,omitempty"`
}

// Fault is what is wrong with one line.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // of the file, from 1
	Reason  string `json:"reason"`
	Advice  string `json:"advice"`
	Foreign bool   `json:"foreign,omitempty"` // it is good, and cannot be translated
}

// Refused are the lines for which nothing is called, nil if there are none.
func (p *Plan) Refused() *promptfile.BadLines {
	if p.AllFaults == 0 {
		return nil
	}
	bad := &promptfile.BadLines{All: p.AllFaults}
	for _, f := range p.Faults {
		e := &prompts.LineError{File: f.File, Line: f.Line, Reason: f.Reason, Advice: f.Advice}
		if f.Foreign {
			e.Err = prompts.ErrUntranslatable
		}
		bad.First = append(bad.First, e)
	}
	return bad
}

// refuse notes for which lines nothing is called.
func (p *Plan) refuse(bad *promptfile.BadLines) {
	p.AllFaults = bad.All
	for _, e := range bad.First {
		p.Faults = append(p.Faults, Fault{
			File: e.File, Line: e.FileLine(), Reason: e.Reason, Advice: e.Advice, Foreign: errors.Is(e, prompts.ErrUntranslatable),
		})
	}
}

// segmentOfChunk is the number of the segment that a chunk is in.
func (p *Plan) segmentOfChunk(n int) int {
	return sort.Search(len(p.Segments), func(i int) bool { return p.Segments[i].FirstChunk > n }) - 1
}

// maxPlan is the most bytes of a plan: 200 for each of some thousand segments, and the faults.
const maxPlan = 16 << 20

// Save writes a plan, and tells the name that Record.Plan is to have.
func (p *Plan) Save(ctx context.Context, s store.Store, who string) (name string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("index: save the plan of %s: %w", p.Job, err)
	}
	name = fmt.Sprintf("%splan-%06d-%s", job.IndexFolder(p.Job), len(p.Segments), who)
	return name, store.CreateBytes(ctx, s, name, text)
}

// LoadPlan reads the plan that a record names; it is empty if it names none.
func LoadPlan(ctx context.Context, s store.Store, r *job.Record) (*Plan, error) {
	p := &Plan{Format: Format, Job: r.Job}
	if r.Plan == "" {
		return p, nil
	}
	if err := load(ctx, s, r.Plan, maxPlan, p); err != nil {
		return nil, err
	}
	if p.Format > Format {
		return nil, fmt.Errorf("index: read %s: %w", r.Plan, job.ErrNewer)
	}
	return p, nil
}

// Whole reports whether a job has a plan that has all of its inputs.
func Whole(ctx context.Context, s store.Store, r *job.Record) (bool, error) {
	p, err := LoadPlan(ctx, s, r)
	if err != nil {
		return false, err
	}
	n, err := p.inputs(ctx, s)
	return r.Plan != "" && n == len(r.Inputs), err
}
