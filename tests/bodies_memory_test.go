//go:build unix

package tests

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
)

// bodiesMemory bounds the command's memory, in bytes, while every call in flight brings an
// answer that would fill the memory.
const bodiesMemory = 600e6

// The bytes of the answers in flight are bounded together, however many calls there are
// and whether they are packed or not; the items fail, and the run ends. CALLS sets how
// many are in flight.
func TestBodiesOfAllCallsAreBounded(t *testing.T) {
	if race.Enabled {
		t.Skip("the command is built without the race detector: nothing of it would be found here")
	}
	calls := setting(t, "CALLS", 64)
	bin := buildCommand(t)
	for name, answer := range map[string]http.HandlerFunc{"endless": endless, "gzip bomb": bomb(t)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := filepath.Join(dir, "prompts.jsonl")
			writeQuestions(t, in, calls)
			peak, took := peakOfEnding(t, 1, bin, "run", in, "-o", filepath.Join(dir, "out.jsonl"), "--base-url", together(t, calls, answer),
				"--model", "m", "-c", strconv.Itoa(calls), "--law", "plain", "--max-attempts", "1", "--progress", "none")
			t.Logf("%d calls: %.1f MB in %v", calls, float64(peak)/1e6, took)
			if peak > bodiesMemory {
				t.Errorf("%d calls took %.1f MB at the peak; at most %.1f are right", calls, float64(peak)/1e6, bodiesMemory/1e6)
			}
			failed, err := os.ReadFile(filepath.Join(dir, "out.errors.jsonl"))
			if n := bytes.Count(failed, []byte(`the answer is longer than allowed: over 67108864 bytes"},"headrace"`)); err != nil || n != calls {
				t.Errorf("%d of %d items failed as they should, %v", n, calls, err)
			}
		})
	}
}

// together serves an answer to each of so many calls once all of them are there.
func together(t *testing.T, calls int, answer http.HandlerFunc) (baseURL string) {
	t.Helper()
	var here sync.WaitGroup
	here.Add(calls)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		here.Done()
		here.Wait()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func endless(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
	for more := bytes.Repeat([]byte("a"), 64<<10); ; {
		if _, err := w.Write(more); err != nil {
			return
		}
	}
}

// bomb serves 256 MiB in a quarter of one.
func bomb(t *testing.T) http.HandlerFunc {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for more := bytes.Repeat([]byte("a"), 1<<20); packed.Len() < 256<<10; {
		must.Get(z.Write(more))(t)
	}
	must.Do(t, z.Close())
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}
