package model

import "testing"

// An inflow that was put aside is not reached by what is learned later, however it is;
// and one that knows nothing takes no room.
func TestInflowPutAsideStays(t *testing.T) {
	var s sends
	for i := range 300 {
		s.add(0.1*float64(i), one)
	}
	var none inflow
	none.fade()
	want(t, "known", none.known() || none.byDepth != nil, false)
	for what, learn := range map[string]func(*inflow){
		"take":   func(f *inflow) { f.addStretch(&s, interval{10, 20, 15}, 0) },
		"begin":  func(f *inflow) { f.begin(&s, interval{10, 20, 15}, 3, 0) },
		"recall": func(f *inflow) { f.recall(70, 10) },
		"fade":   func(f *inflow) { f.fade() },
	} {
		var f inflow
		f.addStretch(&s, interval{1, 9, 20}, 0)
		aside, before := f, *f.byDepth
		learn(&f)
		want(t, what+": put aside", *aside.byDepth, before)
		if *f.byDepth == before {
			t.Errorf("%s taught nothing: not what this test is about", what)
		}
	}
}
