package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// FolderSums holds the sums of one folder's parts in one round.
type FolderSums struct {
	Format int `json:"format"` // that of the job's record
	Parts  int `json:"parts"`
	Sums
	// Failing are the chunks with a failed item that may be tried again.
	Failing []int `json:"failing,omitempty"`
}

// maxSums bounds the bytes of such sums.
const maxSums = 64 << 10

// wholeFolders returns the folders in which each chunk of the round has its part.
func (l *Ledger) wholeFolders() (all []int) {
	for i, left := range l.missing {
		if left == 0 && l.chunksInFolder(i) > 0 {
			all = append(all, i)
		}
	}
	return all
}

// chunksInFolder counts the chunks of the round in a folder.
func (l *Ledger) chunksInFolder(folder int) (n int) {
	for chunk := folder * PerFolder; chunk < min((folder+1)*PerFolder, l.chunks); chunk++ {
		if l.wanted == nil || l.wanted.has(chunk) {
			n++
		}
	}
	return n
}

// isFull reports whether a folder has all its chunks, so that added inputs bring no more.
func (l *Ledger) isFull(folder int) bool { return (folder+1)*PerFolder <= l.chunks }

// Settle sums up a folder whose parts all exist, and leaves the sums in the store, so that nobody needs to
// read the parts again. It does not leave those of a last folder that is not full. It reads a footer for
// each part, and none if the folder was summed up before.
func (l *Ledger) Settle(ctx context.Context, folder int) (FolderSums, error) {
	if !l.isFull(folder) {
		return l.sum(ctx, folder)
	}
	sums, known := l.sums[folder]
	if known {
		return sums, nil
	}
	sums, err := l.loadOrSum(ctx, folder)
	if err == nil {
		l.sums[folder] = sums
	}
	return sums, err
}

// loadOrSum returns the sums of a full folder from the store, and makes them if nobody has. If
// another process makes them at the same time, the first one's count.
func (l *Ledger) loadOrSum(ctx context.Context, folder int) (FolderSums, error) {
	name := job.SumsName(l.job, folder, l.round)
	sums, err := loadSums(ctx, l.store, name)
	if !errors.Is(err, store.ErrMissing) {
		return sums, err
	}
	if sums, err = l.sum(ctx, folder); err != nil {
		return sums, err
	}
	text, err := json.Marshal(&sums)
	if err == nil {
		err = store.CreateBytes(ctx, l.store, name, text)
	}
	if errors.Is(err, store.ErrExists) {
		return loadSums(ctx, l.store, name)
	}
	return sums, err
}

// loadSums reads the sums of a folder. The error is [store.ErrMissing] if there are none yet, and
// [job.ErrNewer] if a newer version has written them.
func loadSums(ctx context.Context, s store.Store, name string) (sums FolderSums, err error) {
	text, err := store.ReadAll(ctx, s, name, maxSums)
	if err != nil {
		return sums, err
	}
	if err := json.Unmarshal(text, &sums); err != nil {
		return sums, fmt.Errorf("parts: read %s: %w", name, err)
	}
	if sums.Format > job.RecordFormat {
		return sums, fmt.Errorf("parts: read %s: %w", name, job.ErrNewer)
	}
	return sums, nil
}

// listedPart is a listed part.
type listedPart struct {
	chunk, round int
	size         int64
}

// sum adds up the sums in the footers of all parts of a folder. A part that is missing is an error.
func (l *Ledger) sum(ctx context.Context, folder int) (FolderSums, error) {
	sums := FolderSums{Format: job.FormatOf(l.Format)}
	type read struct {
		chunk int
		Sums
	}
	footers := inParallel(ctx, parallelRequests, l.partsInFolder(ctx, folder), func(ctx context.Context, p listedPart) (read, error) {
		s, err := sumsOf(ctx, l.store, l.job, p.chunk, p.round, p.size)
		return read{p.chunk, s}, err
	}, func(read) {})
	for f, err := range footers {
		if err != nil {
			return sums, fmt.Errorf("parts: sum up %s: %w", job.PartFolder(l.job, folder), err)
		}
		sums.Parts++
		sums.Sums = sums.Sums.Plus(f.Sums)
		if f.Failed > 0 {
			sums.Failing = append(sums.Failing, f.chunk)
		}
	}
	if want := l.chunksInFolder(folder); sums.Parts != want {
		return sums, fmt.Errorf("parts: sum up %s: %d parts, there should be %d", job.PartFolder(l.job, folder), sums.Parts, want)
	}
	return sums, nil
}

// partsInFolder yields the parts of a folder that are of the round.
func (l *Ledger) partsInFolder(ctx context.Context, folder int) func(func(listedPart, error) bool) {
	return func(yield func(listedPart, error) bool) {
		for o, err := range l.store.List(ctx, job.PartFolder(l.job, folder), "") {
			if err != nil {
				yield(listedPart{}, err)
				return
			}
			chunk, round, ok := job.ParsePart(l.job, o.Name)
			wanted := ok && round == l.round && (l.wanted == nil || l.wanted.has(chunk))
			if wanted && !yield(listedPart{chunk, round, o.Size}, nil) {
				return
			}
		}
	}
}

// Tally reads the sums of the round's parts that are not in known, and adds them to it. It reads a footer for
// each.
func (l *Ledger) Tally(ctx context.Context, known map[int]Sums) error {
	for folder := range l.missing {
		for p, err := range l.partsInFolder(ctx, folder) {
			if err != nil {
				return fmt.Errorf("parts: count %s: %w", l.job, err)
			}
			if _, counted := known[p.chunk]; counted {
				continue
			}
			sums, err := sumsOf(ctx, l.store, l.job, p.chunk, p.round, p.size)
			if err != nil {
				return err
			}
			known[p.chunk] = sums
		}
	}
	return nil
}

// SettleWhole sums up the whole folders that were not summed up yet, and returns the sum of all whole folders.
// Regular calls leave little to do at the end.
func (l *Ledger) SettleWhole(ctx context.Context) (all FolderSums, err error) {
	for _, folder := range l.wholeFolders() {
		sums, err := l.Settle(ctx, folder)
		if err != nil {
			return all, err
		}
		all.Parts += sums.Parts
		all.Sums = all.Sums.Plus(sums.Sums)
		all.Failing = append(all.Failing, sums.Failing...)
	}
	return all, nil
}

// Done marks a round as over.
type Done struct {
	Format int `json:"format"` // that of the job's record
	Round  int `json:"round"`
	Parts  int `json:"parts"` // of the round
	// Sums are those of the round and of all before it.
	Sums
}

// ErrCounts says that the parts of a job do not match its inputs.
var ErrCounts = errors.New("the parts do not have as many lines as the inputs")

// Finish marks a round with all its parts as over: it creates what LoadDone reads. In round 0 the parts
// must have the given number of lines: items, and lines that were skipped.
func (l *Ledger) Finish(ctx context.Context, lines int) (Done, error) {
	d, err := LoadDone(ctx, l.store, l.job, l.round)
	if !errors.Is(err, store.ErrMissing) {
		return d, err
	}
	if !l.Whole() {
		return d, fmt.Errorf("parts: finish %s: %d of %d parts: %w", l.job, l.Done(), l.Len(), ErrIncomplete)
	}
	sums, err := l.SettleWhole(ctx)
	if err != nil {
		return d, err
	}
	d = Done{Format: job.FormatOf(l.Format), Round: l.round, Parts: sums.Parts, Sums: sums.Sums}
	if l.round == 0 && d.Lines != lines {
		return d, fmt.Errorf("parts: finish %s: %d lines, and %d: %w", l.job, d.Lines, lines, ErrCounts)
	}
	if l.round > 0 {
		before, err := LoadDone(ctx, l.store, l.job, l.round-1)
		if err != nil {
			return d, err
		}
		d.Sums = d.After(before.Sums)
	}
	return d, l.createDone(ctx, &d)
}

// createDone writes the object that marks the round as over. If another process was first, d becomes what that one wrote.
func (l *Ledger) createDone(ctx context.Context, d *Done) error {
	text, err := json.Marshal(d)
	if err == nil {
		err = store.CreateBytes(ctx, l.store, job.DoneName(l.job, l.round), text)
	}
	if errors.Is(err, store.ErrExists) {
		*d, err = LoadDone(ctx, l.store, l.job, l.round)
	}
	return err
}

// LoadDone reads what Finish has created: store.ErrMissing if the round is not over.
func LoadDone(ctx context.Context, s store.Store, name string, round int) (d Done, err error) {
	text, err := store.ReadAll(ctx, s, job.DoneName(name, round), maxSums)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("parts: read %s: %w", job.DoneName(name, round), err)
	}
	if d.Format > job.RecordFormat {
		return d, fmt.Errorf("parts: read %s: %w", job.DoneName(name, round), job.ErrNewer)
	}
	return d, nil
}
