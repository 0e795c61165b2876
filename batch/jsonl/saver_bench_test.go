package jsonl

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// BenchmarkSaver: results a second with 256 items in flight, each of which waits
// until it is saved before the next comes. What is compared is sync with os.
func BenchmarkSaver(b *testing.B) {
	body := []byte(`{"choices":[{"message":{"content":"` + strings.Repeat("the mill wheel turns ", 50) + `"}}]}`)
	for name, mode := range map[string]Durability{"sync": Sync, "os": OS} {
		b.Run(name, func(b *testing.B) {
			w, err := Create(filepath.Join(b.TempDir(), "out"))
			if err != nil {
				b.Fatal(err)
			}
			l := savedLine(1)
			l.Response.Body = body
			s := NewSaver(w, SaverConfig{Durability: mode})
			flying := make(chan struct{}, 256)
			b.ReportAllocs()
			for b.Loop() {
				flying <- struct{}{}
				s.Save(l, func(error) { <-flying })
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSaverOfCalls: the same with calls that take a while, as calls do: 256
// of them in flight, none of which waits for the disk: that is the saver's business.
func BenchmarkSaverOfCalls(b *testing.B) {
	for name, mode := range map[string]Durability{"sync": Sync, "os": OS} {
		b.Run(name, func(b *testing.B) {
			w, err := Create(filepath.Join(b.TempDir(), "out"))
			if err != nil {
				b.Fatal(err)
			}
			l := savedLine(1)
			s := NewSaver(w, SaverConfig{Durability: mode})
			b.SetParallelism(256 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					time.Sleep(20 * time.Millisecond) // the call
					s.Save(l, nil)
				}
			})
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
