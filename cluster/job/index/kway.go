package index

import "iter"

// sorted is a sequence that is in order.
type sorted[T any] interface {
	// next gives its next element; false at its end.
	next() (T, bool, error)
}

// merge yields the elements of all sequences in order; the last thing is the first error. less
// reports whether one comes before another.
func merge[T any](all []sorted[T], less func(a, b *T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		m := merging[T]{less: less}
		var none T
		for _, s := range all {
			if err := m.enter(s); err != nil {
				yield(none, err)
				return
			}
		}
		for i := len(m.heads)/2 - 1; i >= 0; i-- {
			m.sink(i)
		}
		for len(m.heads) > 0 {
			if !yield(m.heads[0].element, nil) {
				return
			}
			if err := m.advance(); err != nil {
				yield(none, err)
				return
			}
		}
	}
}

// merging is a heap of sequences, by their next elements.
type merging[T any] struct {
	heads []head[T]
	less  func(a, b *T) bool
}

type head[T any] struct {
	element T
	of      sorted[T]
}

// enter takes a sequence in that is not empty.
func (m *merging[T]) enter(s sorted[T]) error {
	first, there, err := s.next()
	if err == nil && there {
		m.heads = append(m.heads, head[T]{first, s})
	}
	return err
}

// advance replaces the least element by the one behind it.
func (m *merging[T]) advance() error {
	var (
		there bool
		err   error
	)
	if m.heads[0].element, there, err = m.heads[0].of.next(); err != nil {
		return err
	}
	if !there {
		last := len(m.heads) - 1
		m.heads[0] = m.heads[last]
		m.heads = m.heads[:last]
	}
	m.sink(0)
	return nil
}

// sink moves the sequence at i down to where it belongs.
func (m *merging[T]) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heads); child++ {
			if m.less(&m.heads[child].element, &m.heads[least].element) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}
