package index

import (
	"github.com/headrace/headrace/cluster/job"
)

// Segment is what one worker reads through at a time: stretches that follow one another in the
// job's inputs.
type Segment struct {
	Job       string    `json:"job"`
	Number    int       `json:"n"` // from 0, in the order of the inputs
	Stretches []Stretch `json:"stretches"`
}

// Stretch is a range of bytes of one object. Its lines are those that begin behind the first line
// feed in it, or with the object, up to the one that the first line feed behind it ends. So
// each line is in one stretch, wherever they are cut.
type Stretch struct {
	Input  int   `json:"input"`           // of Record.Inputs
	Piece  int   `json:"piece,omitempty"` // of Input.Objects
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}

// Segments cuts a job's inputs. Inputs that were added later begin a segment of their own, so
// that the segments before them stay what they are. A CSV is never cut within an object, as only
// who has read it up to there knows where a row ends.
func Segments(r *job.Record) []Segment {
	c := cutter{job: r.Job, most: max(r.Cut.SegmentBytes, 1)}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		if i > 0 && in.Added != r.Inputs[i-1].Added {
			c.close()
		}
		for piece, o := range in.Objects {
			c.object(Stretch{Input: i, Piece: piece, Bytes: o.Bytes}, in.Format != job.CSV)
		}
	}
	c.close()
	return c.all
}

type cutter struct {
	job  string
	most int64
	all  []Segment
	open []Stretch
	size int64 // of open
}

// object cuts what an object has, or takes it as it is.
func (c *cutter) object(s Stretch, cut bool) {
	for left := s.Bytes; left > 0; left -= s.Bytes {
		s.Bytes = left
		if room := c.most - c.size; cut {
			s.Bytes = min(left, room)
		}
		c.open = append(c.open, s)
		c.size += s.Bytes
		s.Offset += s.Bytes
		if c.size >= c.most || len(c.open) == maxStretches {
			c.close()
		}
	}
}

// maxStretches bounds the objects of a segment: each is opened by itself, and named in the task.
const maxStretches = 1000

func (c *cutter) close() {
	if len(c.open) == 0 {
		return
	}
	c.all = append(c.all, Segment{Job: c.job, Number: len(c.all), Stretches: c.open})
	c.open, c.size = nil, 0
}
