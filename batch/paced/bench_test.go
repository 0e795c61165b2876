package paced

import (
	"net/http"
	"sync"
	"testing"

	"github.com/headrace/headrace/batch"
)

// BenchmarkTransport has answers that come at once, so that only the cost of the line is left: of one
// call after another, and of ten thousand at once.
func BenchmarkTransport(b *testing.B) {
	shared, err := batch.NewShared(batch.WithPlainLaw())
	if err != nil {
		b.Fatal(err)
	}
	defer shared.Close()
	client := &http.Client{Transport: Transport(shared, says(200, answered))}
	one := func() {
		if status, _, err := ask(client, post(b.Context(), "http://api.example", chat)); status != http.StatusOK {
			b.Error(status, err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			one()
		}
	})
	b.Run("10000 at once", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var all sync.WaitGroup
			for range 10000 {
				all.Go(one)
			}
			all.Wait()
		}
	})
}
