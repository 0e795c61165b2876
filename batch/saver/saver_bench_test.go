package saver

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/internal/must"
)

// BenchmarkSaver measures results a second with 256 items in flight, each of which waits
// until it is saved before the next comes. It compares sync with os.
func BenchmarkSaver(b *testing.B) {
	body := []byte(`{"choices":[{"message":{"content":"` + strings.Repeat("the mill wheel turns ", 50) + `"}}]}`)
	for name, mode := range map[string]Durability{"sync": Sync, "os": OS} {
		b.Run(name, func(b *testing.B) {
			w := must.Get(made(filepath.Join(b.TempDir(), "out")))(b)
			l := savedLine(1)
			l.Response.Body = body
			s := New(w, Config{Durability: mode})
			flying := make(chan struct{}, 256)
			b.ReportAllocs()
			for b.Loop() {
				flying <- struct{}{}
				s.Save(l, func(error) { <-flying })
			}
			must.Do(b, s.Close())
		})
	}
}

// BenchmarkSaverOfCalls does the same with calls that take a while, 256 of them in flight.
// No call waits for the disk: that is the saver's business.
func BenchmarkSaverOfCalls(b *testing.B) {
	for name, mode := range map[string]Durability{"sync": Sync, "os": OS} {
		b.Run(name, func(b *testing.B) {
			w := must.Get(made(filepath.Join(b.TempDir(), "out")))(b)
			l := savedLine(1)
			s := New(w, Config{Durability: mode})
			b.SetParallelism(256 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					time.Sleep(20 * time.Millisecond) // the call
					s.Save(l, nil)
				}
			})
			must.Do(b, s.Close())
		})
	}
}

// BenchmarkSaverAlone: how long one line takes that comes when nothing else does. To
// gather must not cost it anything.
func BenchmarkSaverAlone(b *testing.B) {
	for name, mode := range map[string]Durability{"sync": Sync, "os": OS} {
		b.Run(name, func(b *testing.B) {
			s, _ := newSaver(b, Config{Durability: mode}, nil)
			l, done := savedLine(1), make(chan error)
			tell := func(err error) { done <- err }
			b.ReportAllocs()
			for b.Loop() {
				s.Save(l, tell)
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			must.Do(b, s.Close())
		})
	}
}

// BenchmarkSaverOfWorkers has 64 workers that compute for ten microseconds and save. Each
// counts as busy until its line is safe. Besides the time, the number of lines that share a
// sync counts.
func BenchmarkSaverOfWorkers(b *testing.B) {
	syncs := 0
	s, _ := newSaver(b, Config{}, func(s *Saver) {
		s.keeper.disk.SyncData = func(f *os.File) error { syncs++; return disk.Real().SyncData(f) }
	})
	const workers = 64
	l, room := savedLine(1), make(chan struct{}, workers)
	b.SetParallelism(workers / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		work := make([]byte, 20_000)
		for pb.Next() {
			room <- struct{}{}
			sha256.Sum256(work)
			s.Save(l, func(error) { <-room })
		}
	})
	must.Do(b, s.Close())
	b.ReportMetric(float64(b.N)/float64(syncs), "lines/sync")
}
