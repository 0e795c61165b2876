package keys

import (
	"strings"
	"testing"
)

// BenchmarkKey: of a body as programs write it, and of one in canonical form.
func BenchmarkKey(b *testing.B) {
	text := strings.Repeat("which rivers does it cross ", 8)
	body := []byte(`{"model":"bench-1","messages":[{"role":"user","content":"` + text + `"}],"max_tokens":50}`)
	for name, body := range map[string][]byte{
		"unsorted":  body,
		"canonical": []byte(`{"max_tokens":50,"messages":[{"content":"` + text + `","role":"user"}],"model":"bench-1"}`),
	} {
		b.Run(name, func(b *testing.B) {
			var m Maker
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				m.Nth(chat, body, 0)
			}
		})
	}
}
