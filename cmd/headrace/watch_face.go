package main

func (w *watched) face() face { return &lines{out: forPeople(w.stdout), now: w.clock.Now} }
