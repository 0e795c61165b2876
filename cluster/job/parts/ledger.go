package parts

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// PerFolder is the number of chunks whose parts share a folder.
const PerFolder = job.PerFolder

// Ledger knows which chunks of a round have their part: a bit or two for each, and the sums of folders that
// were summed up. It belongs to one goroutine.
type Ledger struct {
	// Format is that of the job's record, used for the sums; 0 is that of a job without a cap.
	Format int

	store   store.Store
	job     string
	round   int
	chunks  int
	wanted  *bitSet // the chunks of the round; nil: all
	present bitSet
	missing []int // for each folder, the chunks that have no part
	sums    map[int]FolderSums
	listed  bool
}

// NewLedger returns the ledger of a job of so many chunks. want are the chunks of the round; nil: all. It
// knows of no part yet.
func NewLedger(s store.Store, name string, round, chunks int, want []int) *Ledger {
	l := &Ledger{store: s, job: name, round: round, missing: make([]int, folders(chunks)), chunks: chunks, sums: map[int]FolderSums{}}
	if want == nil {
		for i := range l.missing {
			l.missing[i] = min(PerFolder, chunks-i*PerFolder)
		}
		return l
	}
	l.wanted = &bitSet{}
	for _, n := range want {
		if n < chunks && l.wanted.add(n) {
			l.missing[n/PerFolder]++
		}
	}
	return l
}

func folders(chunks int) int { return (chunks + PerFolder - 1) / PerFolder }

// Len returns the number of chunks in the round.
func (l *Ledger) Len() int {
	if l.wanted != nil {
		return l.wanted.len
	}
	return l.chunks
}

// Done returns how many of them have their part, as far as is known.
func (l *Ledger) Done() int { return l.present.len }

// Whole reports whether all of them have their part.
func (l *Ledger) Whole() bool { return l.Done() == l.Len() }

// Has reports whether a chunk has its part, as far as is known.
func (l *Ledger) Has(chunk int) bool { return l.present.has(chunk) }

// Note records that a chunk has its part. It reports whether that is news.
func (l *Ledger) Note(chunk int) bool {
	if chunk < 0 || chunk >= l.chunks || l.wanted != nil && !l.wanted.has(chunk) || !l.present.add(chunk) {
		return false
	}
	l.missing[chunk/PerFolder]--
	return true
}

// Missing yields the chunks from one on that have no part, as far as is known.
func (l *Ledger) Missing(from int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := max(from, 0); n < l.chunks; n++ {
			if l.missing[n/PerFolder] == 0 {
				n += PerFolder - 1 - n%PerFolder
				continue
			}
			if !l.present.has(n) && (l.wanted == nil || l.wanted.has(n)) && !yield(n) {
				return
			}
		}
	}
}

// Refresh lists the existing parts, except those of whole folders, which it does not list again. The first time it
// also asks which folders were summed up. In a bucket that takes one request for each thousand parts that it
// lists, and one for each whole folder between others.
func (l *Ledger) Refresh(ctx context.Context) error {
	if !l.listed {
		if err := l.noteSettled(ctx); err != nil {
			return fmt.Errorf("parts: look at %s: %w", l.job, err)
		}
		l.listed = true
	}
	for folder := l.nextIncomplete(0); folder < len(l.missing); {
		next, err := l.listFrom(ctx, folder)
		if err != nil {
			return fmt.Errorf("parts: look at %s: %w", l.job, err)
		}
		folder = l.nextIncomplete(next)
	}
	return nil
}

// Lost returns the chunks of a finished round whose parts are no longer in the store. It lists all parts, because sums only
// say what was there. Call it instead of Refresh.
func (l *Ledger) Lost(ctx context.Context) ([]int, error) {
	l.listed = true
	if err := l.Refresh(ctx); err != nil {
		return nil, err
	}
	return slices.Collect(l.Missing(0)), nil
}

// Reopen deletes the objects that mark a round as over, so that the parts of these chunks can be made again.
func Reopen(ctx context.Context, s store.Store, name string, round int, lost []int) error {
	objects := map[string]bool{job.DoneName(name, round): true}
	for _, chunk := range lost {
		objects[job.SumsName(name, chunk/PerFolder, round)] = true
	}
	for object := range objects {
		if err := s.Delete(ctx, object); err != nil {
			return fmt.Errorf("parts: reopen %s: %w", name, err)
		}
	}
	return nil
}

// nextIncomplete returns the first folder, from the given one on, that lacks parts. It returns the number of folders if
// none does.
func (l *Ledger) nextIncomplete(from int) int {
	if i := slices.IndexFunc(l.missing[from:], func(left int) bool { return left > 0 }); i >= 0 {
		return from + i
	}
	return len(l.missing)
}

// listFrom notes the parts from a folder on, up to a folder that is whole. It returns the folder where it ended.
func (l *Ledger) listFrom(ctx context.Context, from int) (next int, err error) {
	for o, err := range l.store.List(ctx, job.PartsFolder(l.job), job.PartFolder(l.job, from)) {
		if err != nil {
			return 0, err
		}
		chunk, round, ok := job.ParsePart(l.job, o.Name)
		if !ok || chunk >= l.chunks {
			continue
		}
		if folder := chunk / PerFolder; folder > from {
			if l.missing[folder] == 0 {
				return folder, nil
			}
			from = folder
		}
		if round == l.round {
			l.Note(chunk)
		}
	}
	return len(l.missing), nil
}

// noteSettled notes the parts of all folders that were summed up before.
func (l *Ledger) noteSettled(ctx context.Context) error {
	for o, err := range l.store.List(ctx, job.SumsFolder(l.job), "") {
		if err != nil {
			return err
		}
		folder, round, ok := job.ParseSums(l.job, o.Name)
		if !ok || round != l.round || !l.isFull(folder) {
			continue // one that is not full has got more chunks, or will
		}
		for n := folder * PerFolder; n < min((folder+1)*PerFolder, l.chunks); n++ {
			l.Note(n)
		}
	}
	return nil
}

// bitSet is a set of numbers from 0 on, with a bit for each up to its greatest. The zero value is empty.
type bitSet struct {
	words []uint64
	len   int
}

// add adds n, and reports whether n was not in the set yet.
func (s *bitSet) add(n int) bool {
	if s.has(n) {
		return false
	}
	if need := n/64 + 1; need > len(s.words) {
		s.words = append(s.words, make([]uint64, need-len(s.words))...)
	}
	s.words[n/64] |= 1 << (n % 64)
	s.len++
	return true
}

func (s *bitSet) has(n int) bool {
	return n >= 0 && n/64 < len(s.words) && s.words[n/64]&(1<<(n%64)) != 0
}
