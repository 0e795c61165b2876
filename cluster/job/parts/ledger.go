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

	store  store.Store
	job    string
	round  int
	chunks int
	want   *bitSet // the chunks of the round; nil: all
	have   bitSet
	left   []int // for each folder, the chunks that have no part
	sums   map[int]FolderSums
	looked bool
}

// NewLedger returns the ledger of a job of so many chunks. want are the chunks of the round; nil: all. It
// knows of no part yet.
func NewLedger(s store.Store, name string, round, chunks int, want []int) *Ledger {
	l := &Ledger{store: s, job: name, round: round, left: make([]int, folders(chunks)), chunks: chunks, sums: map[int]FolderSums{}}
	if want == nil {
		for i := range l.left {
			l.left[i] = min(PerFolder, chunks-i*PerFolder)
		}
		return l
	}
	l.want = &bitSet{}
	for _, n := range want {
		if n < chunks && l.want.add(n) {
			l.left[n/PerFolder]++
		}
	}
	return l
}

func folders(chunks int) int { return (chunks + PerFolder - 1) / PerFolder }

// Len returns the number of chunks in the round.
func (l *Ledger) Len() int {
	if l.want != nil {
		return l.want.len
	}
	return l.chunks
}

// Done returns how many of them have their part, as far as is known.
func (l *Ledger) Done() int { return l.have.len }

// Whole reports whether all of them have their part.
func (l *Ledger) Whole() bool { return l.Done() == l.Len() }

// Has reports whether a chunk has its part, as far as is known.
func (l *Ledger) Has(chunk int) bool { return l.have.has(chunk) }

// Note records that a chunk has its part. It reports whether that is news.
func (l *Ledger) Note(chunk int) bool {
	if chunk < 0 || chunk >= l.chunks || l.want != nil && !l.want.has(chunk) || !l.have.add(chunk) {
		return false
	}
	l.left[chunk/PerFolder]--
	return true
}

// Missing yields the chunks from one on that have no part, as far as is known.
func (l *Ledger) Missing(from int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := max(from, 0); n < l.chunks; n++ {
			if l.left[n/PerFolder] == 0 {
				n += PerFolder - 1 - n%PerFolder
				continue
			}
			if !l.have.has(n) && (l.want == nil || l.want.has(n)) && !yield(n) {
				return
			}
		}
	}
}

// Refresh lists the existing parts, except those of whole folders, which it does not list again. The first time it
// also asks which folders were summed up. In a bucket that takes one request for each thousand parts that it
// lists, and one for each whole folder between others.
func (l *Ledger) Refresh(ctx context.Context) error {
	if !l.looked {
		if err := l.settled(ctx); err != nil {
			return fmt.Errorf("parts: look at %s: %w", l.job, err)
		}
		l.looked = true
	}
	for folder := l.open(0); folder < len(l.left); {
		next, err := l.list(ctx, folder)
		if err != nil {
			return fmt.Errorf("parts: look at %s: %w", l.job, err)
		}
		folder = l.open(next)
	}
	return nil
}

// Lost returns the chunks of a finished round whose parts are no longer in the store. It lists all parts, because sums only
// say what was there. Call it instead of Look.
func (l *Ledger) Lost(ctx context.Context) ([]int, error) {
	l.looked = true
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

// open returns the first folder from one on that is not whole.
func (l *Ledger) open(from int) int {
	if i := slices.IndexFunc(l.left[from:], func(left int) bool { return left > 0 }); i >= 0 {
		return from + i
	}
	return len(l.left)
}

// list lists parts from a folder on, up to one that is whole, and returns where it ended.
func (l *Ledger) list(ctx context.Context, from int) (next int, err error) {
	for o, err := range l.store.List(ctx, job.PartsFolder(l.job), job.PartFolder(l.job, from)) {
		if err != nil {
			return 0, err
		}
		chunk, round, ok := job.ParsePart(l.job, o.Name)
		if !ok || chunk >= l.chunks {
			continue
		}
		if folder := chunk / PerFolder; folder > from {
			if l.left[folder] == 0 {
				return folder, nil
			}
			from = folder
		}
		if round == l.round {
			l.Note(chunk)
		}
	}
	return len(l.left), nil
}

// settled records all chunks of the folders that were summed up.
func (l *Ledger) settled(ctx context.Context) error {
	for o, err := range l.store.List(ctx, job.SumsFolder(l.job), "") {
		if err != nil {
			return err
		}
		folder, round, ok := job.ParseSums(l.job, o.Name)
		if !ok || round != l.round || !l.full(folder) {
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
