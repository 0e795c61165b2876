package batch

import "golang.org/x/sync/errgroup"

// goroutines starts goroutines in one place, and waits for them there. They return no
// error: a fault goes into a result or into the verdict. It is an errgroup because package
// sync, with its locks, stays out of here.
type goroutines struct{ group errgroup.Group }

// Go starts f in a goroutine.
func (g *goroutines) Go(f func()) {
	g.group.Go(func() error {
		f()
		return nil
	})
}

// Wait waits until all goroutines have ended.
func (g *goroutines) Wait() { _ = g.group.Wait() } // nil: see Go
