package index

// span describes a chunk within its segment.
type span struct {
	stretch int
	offset  int64 // in its object
	first   int   // its first line in the segment, from 0
	marksAt int64 // where its marks begin
	step
}

// spans cuts a segment into chunks. Each has at most so many lines that are not blank and so many bytes, or is one
// step. Steps of blank lines that begin a stretch, or do not fit into the chunk before them, are in no chunk.
func (x *Index) spans(lines int, bytes int64) (all []span, err error) {
	first, marksAt := 0, int64(0)
	for i := range x.Stretches {
		s := &x.Stretches[i]
		c := spanning{lines: lines, bytes: bytes, open: span{stretch: i, offset: s.Begin, first: first, marksAt: marksAt}}
		for one, err := range s.Steps.all(x.Format) {
			if err != nil {
				return nil, err
			}
			c.add(one)
		}
		all = append(all, c.end()...)
		first, marksAt = first+s.Lines, c.open.marksAt
	}
	return all, nil
}

// spanning cuts one stretch.
type spanning struct {
	lines int
	bytes int64
	all   []span
	open  span
}

func (c *spanning) add(one step) {
	if c.open.filled > 0 && (c.open.filled+one.filled > c.lines || c.open.bytes+one.bytes > c.bytes) {
		c.close()
	}
	c.open.add(one)
	if c.open.filled == 0 {
		c.open = c.behind()
	}
}

func (c *spanning) close() {
	c.all = append(c.all, c.open)
	c.open = c.behind()
}

// behind returns a chunk that begins behind the one at hand.
func (c *spanning) behind() span {
	next := c.open
	next.offset += c.open.bytes
	next.first += c.open.lines
	next.marksAt += c.open.marks
	next.step = step{}
	return next
}

func (c *spanning) end() []span {
	if c.open.filled > 0 {
		c.close()
	}
	return c.all
}
