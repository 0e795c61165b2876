package index

import "sort"

// files tells which file a line of the whole input is of.
type files struct {
	inputs []int // the files that have been seen, in order
	above  []int // how many lines are before each
}

// begin notes that an input begins behind so many lines, if it is another than the last.
func (f *files) begin(input, above int) {
	if n := len(f.inputs); n > 0 && f.inputs[n-1] == input {
		return
	}
	f.inputs, f.above = append(f.inputs, input), append(f.above, above)
}

// place is the file that a line, from 1, is in, and how many lines are before that.
func (f *files) place(line int) (input, above int) {
	i := sort.SearchInts(f.above, line) - 1
	return f.inputs[i], f.above[i]
}
