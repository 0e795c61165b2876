package job

// A Chunk is a stretch of consecutive lines of a job's input: the unit of claiming. Its bytes
// begin behind a line feed, or at the beginning of the object, and end with one, or with the object.
type Chunk struct {
	Job    string `json:"job"`
	Number int    `json:"n"`      // from 0, in the order of the input
	Round  int    `json:"round"`  // 0: of the first run; n: of the n-th that tries again what failed
	Object string `json:"object"` // of the input, as its store names it
	// Identity is the object's as it was when the job was indexed, in the store's own
	// word (etag, or size and time): if it is another now, the chunk cannot be read.
	Identity  string `json:"identity"`
	Offset    int64  `json:"offset"`
	Bytes     int64  `json:"bytes"`
	FirstLine int    `json:"line"`  // its number in the whole input, from 1
	Lines     int    `json:"lines"` // blank and bad ones included
	// Index names the index object in which the ordinals of lines without an id lie.
	Index string `json:"index,omitempty"`
}
