package index

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
)

// FuzzChunks: whatever a file holds and wherever it is cut, its chunks give what the whole gives.
func FuzzChunks(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 9))
		f.Add(someLines(rng, 12, int(seed)), seed, seed%2 == 0, seed%3 == 0, seed%4 == 0)
	}
	f.Add([]byte("{\"prompt\":\"a\"}\r\n\n{\"id\":\"line-000001\",\"prompt\":\"\"}"), uint64(3), true, true, false)
	f.Add([]byte("\n\n\n"), uint64(4), false, false, false)
	f.Fuzz(func(t *testing.T, text []byte, seed uint64, skipBad, skipForeign, plain bool) {
		if prompts.Packed(text) != "" || len(text) > 10_000 {
			t.Skip() // it would not be read as it is; a long one takes long
		}
		format := job.JSONL
		if plain {
			format = job.Text
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		checkWorld(t, rng, bytes.Clone(text), format, someCut(rng), job.Reading{SkipBad: skipBad, SkipUntranslatable: skipForeign})
	})
}
