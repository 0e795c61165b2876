package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// workFolder returns the folder of a chunk's journals, partName the name of its part.
func workFolder(c *job.Chunk) string { return job.WorkFolder(c.Job, c.Number, c.Round) }
func partName(c *job.Chunk) string   { return job.PartName(c.Job, c.Number, c.Round) }

// journalName returns the object name of a claim's journal. It replaces the dot of the claim's name, because
// a store adds its own suffix behind a dot.
func journalName(c *job.Chunk, n claim.Name) string {
	return workFolder(c) + swapLast(n.String(), ".", inJournals)
}

const inJournals = "_"

// claimOf undoes journalName, for the part behind the folder.
func claimOf(journal string) (claim.Name, bool) {
	return claim.ParseName(swapLast(journal, inJournals, "."))
}

func swapLast(s, from, to string) string {
	if at := strings.LastIndex(s, from); at >= 0 {
		return s[:at] + to + s[at+len(from):]
	}
	return s
}

// lookPart looks whether the part exists.
func (x *Executor) lookPart(d *desk) {
	x.inBackground(func() func() {
		ctx, cancel := x.bounded(d.ctx, storeTime)
		defer cancel()
		there, err := isThere(ctx, x.cfg.Store, partName(&d.chunk))
		return func() { x.step(claim.PartLooked{ID: d.id, There: there, Err: err}) }
	})
}

func isThere(ctx context.Context, s store.Store, name string) (bool, error) {
	in, err := s.Open(ctx, name, 0, 1)
	if err != nil {
		if errors.Is(err, store.ErrMissing) {
			err = nil
		}
		return false, err
	}
	_ = in.Close() // it was not read
	return true, nil
}

// list lists the journals.
func (x *Executor) list(d *desk) {
	x.inBackground(func() func() {
		ctx, cancel := x.bounded(d.ctx, storeTime)
		defer cancel()
		names, err := x.journals(ctx, &d.chunk)
		return func() { x.step(claim.Listed{ID: d.id, Names: names, Err: err}) }
	})
}

func (x *Executor) journals(ctx context.Context, c *job.Chunk) (names []claim.Name, err error) {
	folder := workFolder(c)
	for object, err := range store.Journals(ctx, x.cfg.Store, folder) {
		if err != nil {
			return nil, err
		}
		if n, ok := claimOf(object[len(folder):]); ok {
			names = append(names, n)
		}
	}
	return names, nil
}

// clean deletes the journals. Journals that stay are in nobody's way, because the part is there.
func (x *Executor) clean(d *desk) {
	x.inBackground(func() func() {
		ctx, cancel := x.bounded(d.ctx, storeTime)
		defer cancel()
		names, err := x.journals(ctx, &d.chunk)
		for _, n := range names {
			err = errors.Join(err, store.DeleteJournal(ctx, x.cfg.Store, journalName(&d.chunk, n)))
		}
		if err != nil {
			x.cfg.Say(fmt.Sprintf("chunk %v is done, and some of its journals stay: %v", &d.chunk, err))
		}
		return func() { x.step(claim.Cleaned{ID: d.id}) }
	})
}
