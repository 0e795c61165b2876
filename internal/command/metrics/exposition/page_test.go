package exposition

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A page has each family once, families, labels and series in order, and escapes what labels and helps hold.
func TestAPageIsWrittenInTheTextFormat(t *testing.T) {
	calls := &Family{Name: "z_calls_total", Help: "Calls,\nby \\ \"outcome\".", Kind: Counter, Labels: []string{"outcome", "lane"}}
	took := &Family{Name: "took_seconds", Help: "Time.", Kind: Histogram, Labels: []string{"zone"}}
	plain := &Family{Name: "plain", Help: "Nothing.", Kind: Gauge}
	var p Page
	p.Add(calls, 3, "throttled", "b")
	p.Add(calls, 1e21, "a\"b\\c\nd\xff", "a")
	p.Add(calls, math.NaN(), "nan", "a")
	p.Add(plain, math.Inf(1))
	p.Add(plain, -0.25)
	s := &Spread{Ends: []float64{0.5, 1}, Counts: make([]uint64, 3)}
	for _, v := range []float64{0.5, 0.25, 0.75, 7} {
		s.Add(v)
	}
	p.AddSpread(took, s, "x")
	want := `# HELP plain Nothing.
# TYPE plain gauge
plain -0.25
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{zone="x",le="0.5"} 2
took_seconds_bucket{zone="x",le="1"} 3
took_seconds_bucket{zone="x",le="+Inf"} 4
took_seconds_sum{zone="x"} 8.5
took_seconds_count{zone="x"} 4
# HELP z_calls_total Calls,\nby \\ "outcome".
# TYPE z_calls_total counter
z_calls_total{lane="a",outcome="a\"b\\c\nd` + "\uFFFD" + `"} 1e+21
z_calls_total{lane="b",outcome="throttled"} 3
`
	if got := string(p.AppendText(nil)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if p.Series() != 4 {
		t.Errorf("%d series", p.Series())
	}
}

// A process shows its runtime, and on Linux its time, memory and files: each is plausible.
func TestAProcessShowsItself(t *testing.T) {
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); { // some ticks of a processor
		runtime.Gosched()
	}
	var p Page
	Process{}.Collect(&p)
	got := map[string]float64{}
	for line := range strings.Lines(string(p.AppendText(nil))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "#" {
			got[name] = must.Get(strconv.ParseFloat(value, 64))(t)
		}
	}
	now := float64(time.Now().Unix())
	bounds := map[string][2]float64{
		"go_goroutines": {2, 100}, "go_memstats_alloc_bytes": {1e4, 1e9}, "process_start_time_seconds": {now - 600, now + 1},
		"go_memstats_sys_bytes": {1e6, 1e10}, "go_sched_gomaxprocs_threads": {1, 1e4},
	}
	if runtime.GOOS == "linux" {
		bounds["process_cpu_seconds_total"] = [2]float64{0.01, 600}
		bounds["process_resident_memory_bytes"] = [2]float64{1e6, 1e10}
		bounds["process_virtual_memory_bytes"] = [2]float64{got["process_resident_memory_bytes"], 1e14}
		bounds["process_open_fds"] = [2]float64{3, float64(len(must.Get(os.ReadDir("/proc/self/fd"))(t)))}
	}
	for name, b := range bounds {
		if v, ok := got[name]; !ok || v < b[0] || v > b[1] {
			t.Errorf("%s is %v (%v), want %v to %v", name, v, ok, b[0], b[1])
		}
	}
}

// held is a source that waits.
type held struct{ began, goOn chan struct{} }

func (h held) Collect(*Page) {
	h.began <- struct{}{}
	<-h.goOn
}

// Scrapes beyond the bound are refused at once, and the others are answered.
func TestScrapesAreBounded(t *testing.T) {
	source := held{make(chan struct{}), make(chan struct{})}
	s := httptest.NewServer(Handler(source))
	defer s.Close()
	get := func() (int, string) {
		req := must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL, nil))(t)
		req.Close = true
		resp := must.Get(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		must.Get(io.Copy(io.Discard, resp.Body))(t)
		return resp.StatusCode, resp.Header.Get("Content-Type")
	}
	codes := make(chan int, mostScrapes)
	for range mostScrapes {
		go func() {
			code, kind := get()
			if kind != ContentType {
				code = 0
			}
			codes <- code
		}()
		<-source.began
	}
	if code, _ := get(); code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", code)
	}
	close(source.goOn)
	for range mostScrapes {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a scrape within the bound: %d", code)
		}
	}
}
