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
	want(t, "known", none.known() || none.of != nil, false)
	for what, learn := range map[string]func(*inflow){
		"take":   func(f *inflow) { f.take(&s, interval{10, 20, 15}, 0) },
		"begin":  func(f *inflow) { f.begin(&s, interval{10, 20, 15}, 3, 0) },
		"recall": func(f *inflow) { f.recall(70, 10) },
		"fade":   func(f *inflow) { f.fade() },
	} {
		var f inflow
		f.take(&s, interval{1, 9, 20}, 0)
		aside, before := f, *f.of
		learn(&f)
		want(t, what+": put aside", *aside.of, before)
		if *f.of == before {
			t.Errorf("%s taught nothing: not what this test is about", what)
		}
	}
}
