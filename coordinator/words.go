package coordinator

import (
	"slices"

	"github.com/headrace/headrace/coordinator/machine"
)

// say hands on the words of laws to the outside. It takes back the words that were not received
// yet, and sends them along; the channel then has room, as nobody else sends. Of each lane it
// keeps only the latest word, so at most as many words wait as there are lanes.
//
// An example: the lane says a, and nobody receives it. The lane says b. say takes a back and
// drops it, and b is received. If a was received just before, there is nothing to take back,
// and b is received next.
func (l *loop) say(words []machine.Word) {
	select {
	case old := <-l.c.words:
		l.c.words <- latest(old, words)
	default:
		l.c.words <- slices.Clone(words) // the machine uses its slice again
	}
}

// latest adds words to old ones; a new word replaces the old one of its lane.
func latest(old, words []machine.Word) []machine.Word {
	said := make(map[string]bool, len(words))
	for _, w := range words {
		said[w.Lane] = true
	}
	old = slices.DeleteFunc(old, func(w machine.Word) bool { return said[w.Lane] })
	return append(old, words...)
}
