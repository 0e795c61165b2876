package line

import (
	"strconv"
	"testing"
)

// flows counts the flows of all pools.
func (l *Line) flows() (n int) {
	var count func(f *flow)
	count = func(f *flow) {
		n++
		for _, c := range f.children {
			count(c)
		}
	}
	for _, root := range l.pools {
		count(root)
	}
	return n
}

// Names that come once each, of clients or of tags, are forgotten also while there is always somebody who waits.
func TestPastOfNamesIsForgotten(t *testing.T) {
	for name, place := range map[string]func(i int) Place{
		"tags":    func(i int) Place { return Place{Client: "a", Tag: strconv.Itoa(i)} },
		"clients": func(i int) Place { return Place{Client: strconv.Itoa(i)} },
	} {
		l := New(Config{})
		for i := range 20_000 {
			if _, err := l.Enter("p", place(i)); err != nil {
				t.Fatal(err)
			}
			if i >= 10 { // so many wait always
				l.Leave(l.Next("p"))
			}
		}
		if n := l.flows(); n > 2*maxIdle+100 {
			t.Errorf("%s: %d flows are kept", name, n)
		}
		if len(l.clients) > 11 {
			t.Errorf("%s: %d clients are kept", name, len(l.clients))
		}
	}
}
