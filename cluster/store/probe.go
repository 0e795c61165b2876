package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// DefaultProbeRounds is the number of names that the probe's writers race for. In a store that
	// looks and then renames, 137 of 500 races had two winners: 20 rounds let one such store pass
	// in 600.
	DefaultProbeRounds = 20
	// DefaultProbeWriters is the number of writers that race for each name.
	DefaultProbeWriters = 16
	// probeCleaning bounds the time in which a probe deletes what it wrote.
	probeCleaning = 30 * time.Second
	// probeFolder begins the names that a probe writes; a random one follows.
	probeFolder = "probe/"
)

// ProbeConfig sets how hard a probe tries a store. The zero value is usable.
type ProbeConfig struct {
	Rounds  int // names to race for; 0 or less means DefaultProbeRounds
	Writers int // writers that race for each name; 0 or less means DefaultProbeWriters
}

// Unsafe is a probe's finding; errors.Is finds ErrUnsafe in it.
type Unsafe struct {
	Name    string // of the object
	Round   int    // from 1; 0 where no race was lost
	Writers int    // writers that raced for the name
	Winners int    // writers that got no error
	Why     string
}

func (u *Unsafe) Error() string {
	if u.Round == 0 {
		return fmt.Sprintf("%s: %s: %s", ErrUnsafe, u.Name, u.Why)
	}
	return fmt.Sprintf("%s: %s: in round %d of the probe %d of %d writers of one name believed that they wrote it: %s",
		ErrUnsafe, u.Name, u.Round, u.Winners, u.Writers, u.Why)
}

// Is reports that it is ErrUnsafe.
func (u *Unsafe) Is(target error) bool { return target == ErrUnsafe }

// Probe races for names, and then reads and lists the results; on a disk that takes a second. nil
// says that each round had one winner, whose object was there at once. *Unsafe names the fault; any
// other error says that the store could not be tried. Probe deletes what it wrote.
//
// One machine cannot see what another one sees late, as through a file server whose clients cache.
func Probe(ctx context.Context, s Store, chance *rand.Rand, cfg ProbeConfig) error {
	cfg.Rounds = cmp.Or(max(0, cfg.Rounds), DefaultProbeRounds)
	cfg.Writers = cmp.Or(max(0, cfg.Writers), DefaultProbeWriters)
	p := &probe{store: s, cfg: cfg, folder: fmt.Sprintf("%s%016x/", probeFolder, chance.Uint64())}
	defer p.clean(ctx)
	for round := 1; round <= cfg.Rounds; round++ {
		if err := p.raceFor(ctx, round); err != nil {
			return fmt.Errorf("store: probe: %w", err)
		}
	}
	if err := p.checkDeleted(ctx); err != nil {
		return fmt.Errorf("store: probe: %w", err)
	}
	return nil
}

// probe is a probe under way.
type probe struct {
	store  Store
	cfg    ProbeConfig
	folder string
	names  []string // that were written, in order
}

// raceFor lets writers race for one name, and checks the result.
func (p *probe) raceFor(ctx context.Context, round int) error {
	name := fmt.Sprintf("%s%04d", p.folder, round)
	p.names = append(p.names, name)
	answers := p.raceWriters(ctx, name)
	winners := 0
	last := 0 // a winner
	for writer, err := range answers {
		switch {
		case err == nil:
			winners++
			last = writer
		case !errors.Is(err, ErrExists):
			return err
		}
	}
	fault := &Unsafe{Name: name, Round: round, Writers: p.cfg.Writers, Winners: winners}
	if winners != 1 {
		fault.Why = "exactly one may be"
		return fault
	}
	return p.check(ctx, name, last, fault)
}

// raceWriters starts all writers at once, and waits for all of them.
func (p *probe) raceWriters(ctx context.Context, name string) []error {
	begin, errs := make(chan struct{}), make([]error, p.cfg.Writers)
	var writers sync.WaitGroup
	for writer := range errs {
		writers.Go(func() {
			<-begin
			errs[writer] = CreateBytes(ctx, p.store, name, writerContent(writer))
		})
	}
	close(begin)
	writers.Wait()
	return errs
}

// writerContent returns a writer's content: no two the same, and of different lengths.
func writerContent(writer int) []byte { return bytes.Repeat([]byte{byte('a' + writer%26)}, 100+writer) }

// check reads and lists the winner's object, and checks that the store refuses a late writer.
func (p *probe) check(ctx context.Context, name string, winner int, fault *Unsafe) error {
	content, err := ReadAll(ctx, p.store, name, 1<<20)
	switch {
	case errors.Is(err, ErrMissing):
		fault.Why = "and it cannot be read"
	case err != nil:
		return err
	case !bytes.Equal(content, writerContent(winner)):
		fault.Why = "and what is there is not what he wrote"
	}
	if fault.Why != "" {
		return fault
	}
	if err := p.checkLists(ctx, fault); err != nil {
		return err
	}
	return p.checkLateWriter(ctx, name, content, fault)
}

// checkLists checks that a list shows all names written so far. A list after the last name but one must show just the
// last.
func (p *probe) checkLists(ctx context.Context, fault *Unsafe) error {
	names, err := p.list(ctx, "")
	if err != nil {
		return err
	}
	if !slices.Equal(names, p.names) {
		fault.Why = fmt.Sprintf("and of %d objects the list shows %d, or not in order", len(p.names), len(names))
		return fault
	}
	before := ""
	if len(p.names) > 1 {
		before = p.names[len(p.names)-2]
	}
	names, err = p.list(ctx, before)
	if err == nil && !slices.Equal(names, p.names[len(p.names)-1:]) {
		fault.Why = "and a list from it on does not begin with it"
		return fault
	}
	return err
}

func (p *probe) list(ctx context.Context, after string) ([]string, error) {
	var names []string
	for o, err := range p.store.List(ctx, p.folder, after) {
		if err != nil {
			return nil, err
		}
		names = append(names, o.Name)
	}
	return names, nil
}

// checkLateWriter checks that the store refuses a second object of the name, and keeps the first.
func (p *probe) checkLateWriter(ctx context.Context, name string, content []byte, fault *Unsafe) error {
	err := CreateBytes(ctx, p.store, name, []byte("late"))
	if err == nil {
		fault.Why = "and so was one who came late"
		return fault
	}
	if !errors.Is(err, ErrExists) {
		return err
	}
	now, err := ReadAll(ctx, p.store, name, 1<<20)
	if err == nil && !bytes.Equal(now, content) {
		fault.Why = "and one who came late was refused, but wrote all the same"
		return fault
	}
	return err
}

// checkDeleted deletes an object, and checks that it can no longer be read. A chunk's journals are deleted once its part is
// there, and the next reader must not find them.
func (p *probe) checkDeleted(ctx context.Context) error {
	name := p.names[0]
	if err := p.store.Delete(ctx, name); err != nil {
		return err
	}
	_, err := ReadAll(ctx, p.store, name, 1<<20)
	switch {
	case err == nil:
		return &Unsafe{Name: name, Why: "it was deleted, and can still be read"}
	case errors.Is(err, ErrMissing):
		return nil
	}
	return err
}

// clean deletes what was written, also after the end of ctx. Anything that stays does no harm.
func (p *probe) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleaning)
	defer cancel()
	for _, name := range p.names {
		_ = p.store.Delete(ctx, name)
	}
}
