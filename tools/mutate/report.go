package main

import "fmt"

// A report prints the fate of each mutant as soon as it is known, and sums up.
type report struct {
	all    int // mutants there are
	counts map[string]*[3]int
	order  []string
	left   []mutant // those that survived
}

func newReport(all int) *report { return &report{all: all, counts: map[string]*[3]int{}} }

var verdictWords = [...]string{"SURVIVED", "killed", "invalid"}

// add counts a verdict and prints it, except that of a mutant that does not compile.
func (r *report) add(m mutant, v verdict, by string) {
	c := r.counts[m.pkg.dir]
	if c == nil {
		c = &[3]int{}
		r.counts[m.pkg.dir], r.order = c, append(r.order, m.pkg.dir)
	}
	c[v]++
	switch v {
	case survived:
		r.left = append(r.left, m)
		fmt.Println(verdictWords[v], m)
	case killed:
		fmt.Printf("%s   %v (%s)\n", verdictWords[v], m, by)
	}
}

// tried returns the number of mutants that compiled.
func (r *report) tried() (n int) {
	for _, c := range r.counts {
		n += c[survived] + c[killed]
	}
	return n
}

// sum prints the counts of each package, in the order of their first trials, and the survivors.
func (r *report) sum() {
	fmt.Printf("\n%d mutants tried of %d that there are\n", r.tried(), r.all)
	for _, pkg := range r.order {
		c := r.counts[pkg]
		fmt.Printf("%-20s %3d killed, %3d survived; %d did not compile\n", pkg, c[killed], c[survived], c[invalid])
	}
	if len(r.left) > 0 {
		fmt.Println("\nthose that survived:")
	}
	for _, m := range r.left {
		fmt.Println(" ", m)
	}
}
