package observe

// MaxSamples is the largest number of samples in a timeline: at a second each an hour, and a
// week at four minutes each.
const MaxSamples = 3600

// A timeline holds a run's samples. When it is full, neighbours merge, and from then on twice as
// many samples as before make one.
type timeline struct {
	packer
	whole [][]byte // packed
	each  int      // samples in each of these
	last  Sample   // the latest one
	in    int      // samples in that; at most each
}

// add appends a sample.
func (t *timeline) add(s Sample) {
	switch {
	case t.in == 0:
		t.each, t.last, t.in = 1, s, 1
		return
	case t.in < t.each:
		t.last, t.in = t.last.Merge(s), t.in+1
		return
	}
	t.whole = append(t.whole, t.pack(&t.last))
	t.last, t.in = s, 1
	if len(t.whole) == MaxSamples {
		t.halve()
	}
}

// halve merges neighbours. MaxSamples is even, so none is left over.
func (t *timeline) halve() {
	half := make([][]byte, 0, MaxSamples)
	for k := 0; k+1 < len(t.whole); k += 2 {
		merged := t.unpack(t.whole[k]).Merge(t.unpack(t.whole[k+1]))
		half = append(half, t.pack(&merged))
	}
	t.whole, t.each = half, 2*t.each
}

// list returns a copy.
func (t *timeline) list() []Sample {
	if t.in == 0 {
		return nil
	}
	list := make([]Sample, 0, len(t.whole)+1)
	for _, packed := range t.whole {
		list = append(list, t.unpack(packed))
	}
	return append(list, t.copy(&t.last))
}

// copy returns a copy that shares no memory with the sample.
func (t *timeline) copy(s *Sample) Sample { return t.unpack(t.pack(s)) }

// Timeline returns a copy of the run's samples so far, oldest first: at most MaxSamples.
func (r *Recorder) Timeline() []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timeline.list()
}
