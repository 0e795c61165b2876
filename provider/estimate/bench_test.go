package estimate

import (
	"strings"
	"testing"
)

// BenchmarkRequest: a prompt of 300 bytes, as it is estimated when it is read: no memory, one walk.
func BenchmarkRequest(b *testing.B) {
	body := []byte(`{"model":"bench-1","messages":[{"role":"user","content":"00000012 ` +
		strings.Repeat("which rivers does it cross ", 12)[:209] + `"}],"max_tokens":50}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Request(body)
	}
}
