package serve

import (
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/provider/sim"
)

// used returns the bytes of what lives, and of the stacks.
func used() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc + s.StackInuse
}

// Ten thousand requests of 8 KiB that wait need less than 400 MiB: 40 KiB each, of which net/http's buffers, the
// stacks of its two goroutines and the body are most.
func TestMemoryOfWaiting(t *testing.T) {
	const n = 500
	most := uint64(40 << 10)
	if race.Enabled { // its frames are larger, and a stack that passes a size has twice as much
		most = 56 << 10
	}
	m := mills(t, dialects["openai"], sim.Config{Latency: sim.Latency{Median: time.Hour}}, nil, batch.WithConcurrency(1))
	server := httptest.NewServer(m.Server)
	defer server.Close()
	body := strings.Replace(chatBody, "water", strings.Repeat("x", 8000), 1)
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nUser-Agent: test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", token, len(body))
	before := used()
	for range n {
		conn := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
		defer func() { _ = conn.Close() }()
		must.Get(conn.Write([]byte(head + body)))(t)
	}
	for m.Waiting() < n-2 { // one is called, and one has its turn
		time.Sleep(time.Millisecond)
	}
	each := (used() - before) / n
	for try := 0; each > most && try < 20; try++ { // on a busy machine some have not come to rest, and a collection lets one stack shrink by half
		time.Sleep(10 * time.Millisecond)
		each = (used() - before) / n
	}
	if each > most {
		t.Errorf("a request that waits needs %d bytes, want at most %d", each, most)
	} else {
		t.Logf("a request that waits needs %d bytes", each)
	}
}
