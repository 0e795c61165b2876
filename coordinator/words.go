package coordinator

import (
	"slices"

	"github.com/headrace/headrace/coordinator/machine"
)

// say hands on what laws say to the outside. What was not received yet is taken back, and
// goes with it; the channel then has room, as nobody else sends. Of each lane one word is
// kept, the latest, so what waits here is no more than there are lanes.
//
// The order of events that this is about: the lane says a; nobody receives it; the lane
// says b; a is taken back and dropped, and b is what is received. Had a been received just
// before, there would be nothing to take back, and b is received next.
func (l *loop) say(words []machine.Word) {
	select {
	case old := <-l.c.words:
		l.c.words <- latest(old, words)
	default:
		l.c.words <- slices.Clone(words) // the machine uses its slice again
	}
}

// latest adds words to old ones, which the same lane's take the place of.
func latest(old, words []machine.Word) []machine.Word {
	said := make(map[string]bool, len(words))
	for _, w := range words {
		said[w.Lane] = true
	}
	old = slices.DeleteFunc(old, func(w machine.Word) bool { return said[w.Lane] })
	return append(old, words...)
}
