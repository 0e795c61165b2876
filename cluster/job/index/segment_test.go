package index

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/job"
)

func fileOf(format string, added int, sizes ...int64) job.Input {
	in := job.Input{Name: "x", Format: format, Added: added}
	for i, n := range sizes {
		in.Objects = append(in.Objects, job.Object{Name: fmt.Sprint(i), Bytes: n})
	}
	return in
}

// Segments are so long as they are to be, go over files, and stay what they are when more is added.
func TestSegments(t *testing.T) {
	r := job.Record{Job: "j", Cut: job.Cut{SegmentBytes: 10}, Inputs: []job.Input{
		fileOf(job.JSONL, 0, 25), fileOf(job.JSONL, 0, 3), fileOf(job.CSV, 0, 35), fileOf(job.Text, 0, 0, 1, 2), fileOf(job.JSONL, 1, 4),
	}}
	var got []string
	for i, s := range Segments(&r) {
		if s.Number != i || s.Job != "j" {
			t.Errorf("%+v", s)
		}
		var of []string
		for _, st := range s.Stretches {
			of = append(of, fmt.Sprintf("%d.%d:%d+%d", st.Input, st.Piece, st.Offset, st.Bytes))
		}
		got = append(got, strings.Join(of, " "))
	}
	want := "0.0:0+10 | 0.0:10+10 | 0.0:20+5 1.0:0+3 2.0:0+35 | 3.1:0+1 3.2:0+2 | 4.0:0+4"
	if all := strings.Join(got, " | "); all != want {
		t.Errorf("got  %s\nwant %s", all, want)
	}
	r.Inputs = r.Inputs[:4]
	if before := Segments(&r); len(before) != len(got)-1 {
		t.Errorf("%d segments, and %d with one input more", len(before), len(got))
	}
}

// Of many small files no segment has more than it can name.
func TestSegmentsOfSmallFiles(t *testing.T) {
	r := job.Record{Job: "j", Cut: job.Cut{SegmentBytes: job.DefaultSegment}}
	for range 2*maxStretches + 7 {
		r.Inputs = append(r.Inputs, fileOf(job.JSONL, 0, 5))
	}
	all := Segments(&r)
	if len(all) != 3 || len(all[0].Stretches) != maxStretches || len(all[2].Stretches) != 7 {
		t.Errorf("%d segments, the first of %d files", len(all), len(all[0].Stretches))
	}
}
