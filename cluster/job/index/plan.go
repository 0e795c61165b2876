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

// Plan says how a job's inputs are cut into chunks, or why nothing of the job may be called.
type Plan struct {
	Format   int       `json:"format"`
	Job      string    `json:"job"`
	Segments []Planned `json:"segments"`
	// Inputs is the number of its inputs; 0 in format 1, where the last segment shows it.
	Inputs int `json:"inputs,omitempty"`
	// ChunkLines is the number of lines of a full chunk, without blank ones.
	ChunkLines int `json:"chunk_lines"`

	Lines          int `json:"lines"`
	Items          int `json:"items"`
	Bad            int `json:"bad"` // lines that are no request; they are skipped if the plan is not refused
	Untranslatable int `json:"untranslatable"`
	Chunks         int `json:"chunks"`

	// Faults are the first lines that keep the job from being called: prompts.MaxComplaints of AllFaults.
	Faults    []Fault `json:"faults,omitempty"`
	AllFaults int     `json:"all_faults,omitempty"`
}

// Planned describes one segment as part of the whole.
type Planned struct {
	First int `json:"first"` // number of the job's lines before it
	// Above is the number of lines in the files before the file of its first stretch.
	Above      int    `json:"above"`
	FirstChunk int    `json:"first_chunk"`
	Chunks     int    `json:"chunks"`
	Index      string `json:"index,omitempty"` // the object with its index; "" in format 1, see oldIndex
	Marks      string `json:"marks,omitempty"` // in format 1 the object with the places of its chunks' marks
	Refused    bool   `json:"refused,omitempty"`
}

// Fault describes a defect of one line.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // of the file, from 1
	Reason  string `json:"reason"`
	Advice  string `json:"advice"`
	Foreign bool   `json:"foreign,omitempty"` // the line is good, but cannot be translated
}

// Refused returns the lines that keep the job from being called; nil if there are none.
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

// refuse records the lines that keep the job from being called.
func (p *Plan) refuse(bad *promptfile.BadLines) {
	p.AllFaults = bad.All
	for _, e := range bad.First {
		p.Faults = append(p.Faults, Fault{
			File: e.File, Line: e.FileLine(), Reason: e.Reason, Advice: e.Advice, Foreign: errors.Is(e, prompts.ErrUntranslatable),
		})
	}
}

// segmentOfChunk returns the number of a chunk's segment.
func (p *Plan) segmentOfChunk(n int) int {
	return sort.Search(len(p.Segments), func(i int) bool { return p.Segments[i].FirstChunk > n }) - 1
}

// maxPlan bounds the bytes of a plan: 200 for each of some thousand segments, and the faults.
const maxPlan = 16 << 20

// Save writes a plan, and returns the name for Record.Plan.
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
