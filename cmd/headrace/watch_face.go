package main

// face is how a run is shown at standard output.
func (w *watched) face() face { return &lines{out: forPeople(w.stdout), now: w.clock.Now} }
