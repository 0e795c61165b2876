package job

import "fmt"

// A Chunk is a stretch of consecutive lines of a job's input: the unit of claiming. Its bytes
// begin behind a line feed, or at the beginning of the object. They end with a line feed, or with the
// object. Those of a CSV begin and end between rows. A Chunk holds nothing of the prompts themselves.
type Chunk struct {
	Job    string `json:"job"`
	Number int    `json:"n"`               // from 0, in the order of the input
	Round  int    `json:"round,omitempty"` // 0: the first run; n: the n-th retry of failed items
	Format int    `json:"format"`          // of its job's record; 0 is RecordFormat

	Input  int   `json:"input"`           // of Record.Inputs
	Piece  int   `json:"piece,omitempty"` // of Input.Objects
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`

	FirstLine int `json:"line"`            // its number in the whole input, from 1
	Lines     int `json:"lines"`           // blank and bad ones included
	Above     int `json:"above,omitempty"` // lines of the files before this one

	// Marks names the object with the marks of its lines, which hold what earlier lines decide about
	// them; "" if there are none. The marks are MarksBytes bytes from MarksOffset on.
	Marks       string `json:"marks,omitempty"`
	MarksOffset int64  `json:"marks_offset,omitempty"`
	MarksBytes  int64  `json:"marks_bytes,omitempty"`
	// Refused says that it may contain lines that the provider does not take: only then its
	// reader checks that again.
	Refused bool `json:"refused,omitempty"`
}

func (c *Chunk) String() string {
	if c.Round == 0 {
		return fmt.Sprintf("%s/%d", c.Job, c.Number)
	}
	return fmt.Sprintf("%s/%d.r%d", c.Job, c.Number, c.Round)
}
