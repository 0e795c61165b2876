package executor

import (
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
)

// What an item costs a worker on top of a stream, where calls take no time and a folder is the store.
func BenchmarkItem(b *testing.B) {
	w := newWorld(b, b.N/1000+1, 1000)
	w.fate = func(*promptfile.Item, int) (time.Duration, error) { return 0, nil }
	b.ReportAllocs()
	b.ResetTimer()
	k := w.start("w1", func(c *Config) { c.Claim.Concurrency = 512 })
	for w.queue.left() > 0 {
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	k.drain()
}

// And what the stream costs without it.
func BenchmarkStreamAlone(b *testing.B) {
	w := newWorld(b, b.N/1000+1, 1000)
	w.fate = func(*promptfile.Item, int) (time.Duration, error) { return 0, nil }
	j := w.job("w1")
	items := func(yield func(*promptfile.Item) bool) {
		for req, err := range j.Read(b.Context(), w.whole()) {
			if err == nil && !yield(j.Item(req)) {
				return
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for res, err := range batch.Stream(b.Context(), items, j.Call, batch.WithPlainLaw(), batch.WithConcurrency(512)) {
		if err != nil {
			b.Fatal(err)
		}
		j.Line(&res)
	}
}
