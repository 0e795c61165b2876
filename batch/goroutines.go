package batch

import "golang.org/x/sync/errgroup"

// goroutines are started in one place, and waited for there. None of them returns an
// error: what goes wrong is a result's, or the verdict's. It is an errgroup because
// package sync, with its locks, stays out of here.
type goroutines struct{ group errgroup.Group }

// Go starts one.
func (g *goroutines) Go(f func()) {
	g.group.Go(func() error {
		f()
		return nil
	})
}

// Wait waits until all have ended.
func (g *goroutines) Wait() { _ = g.group.Wait() } // nil: see Go
