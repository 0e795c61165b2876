package sim

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

func BenchmarkDecide(b *testing.B) {
	m := NewModel(Config{RPM: 60_000, TPM: 6_000_000, Latency: Latency{Median: time.Second, Sigma: .4}}, epoch)
	now, c := epoch, Call{Tokens: 100}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		m.Decide(now, c)
	}
}

func BenchmarkTransport(b *testing.B) {
	client := &http.Client{Transport: NewTransport(New(Fast(), clockwork.NewRealClock()))}
	body := chatBody(strings.Repeat("What is in the river? ", 20))
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Post("http://sim/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
