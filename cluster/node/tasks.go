package node

import "golang.org/x/sync/errgroup"

// tasks are goroutines that one owner has started and waits for.
type tasks struct{ group errgroup.Group }

func (t *tasks) start(do func()) {
	t.group.Go(func() error { do(); return nil })
}

func (t *tasks) wait() { _ = t.group.Wait() }
