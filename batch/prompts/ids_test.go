package prompts

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/must"
)

// An id used twice is named with both lines; lines without one never get one that is taken.
func TestDuplicateIDsNameBothLines(t *testing.T) {
	text := `{"custom_id":"a","prompt":"1"}
{"custom_id":"b","prompt":"1"}
{"id":"a","prompt":"2"}
{"prompt":"3"}
{"custom_id":"line-000004","prompt":"4"}
{"custom_id":"line-000007","prompt":"5"}
{"prompt":"6"}
{"custom_id":"line-8","prompt":"7"}
{"custom_id":"line-000009","prompt":"its own number"}
{"id":3.0,"prompt":"8"}
{"id":"3.0","prompt":"9"}`
	_, bad := read(t, text, Config{DefaultModel: "m"})
	got := map[int]string{}
	for _, b := range bad {
		got[b.Line] = b.Reason[strings.LastIndex(b.Reason, "on line"):]
		if !errors.Is(b, ErrDuplicateID) {
			t.Errorf("kind of %v", b)
		}
	}
	want := map[int]string{3: "on line 1", 5: "on line 4", 7: "on line 6", 11: "on line 10"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if reqs, bad := read(t, text, Config{DefaultModel: "m", Checked: true}); len(bad) > 0 || len(reqs) != 11 {
		t.Errorf("a reader told that ids are good complains: %v", bad)
	}
}

// A line without an id keeps its key when lines come above it; lines that ask the
// same have different keys all the same.
func TestKeysOfLinesWithoutID(t *testing.T) {
	cfg := Config{DefaultModel: "m"}
	before, _ := read(t, "{\"prompt\":\"a\"}\n{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n", cfg)
	after, _ := read(t, "\n{\"prompt\":\"new\"}\n{\"prompt\":\"b\"}\n{\"prompt\":\"a\"}\n{ \"prompt\" : \"a\" }\n", cfg)
	keys := func(reqs []Request) []string {
		out := []string{}
		for _, r := range reqs {
			out = append(out, r.Key)
		}
		slices.Sort(out)
		return out
	}
	if b := keys(before); len(slices.Compact(slices.Clone(b))) != 3 {
		t.Errorf("keys are not all different: %v", b)
	}
	for _, k := range keys(before) {
		if !slices.Contains(keys(after), k) {
			t.Errorf("key %s is lost by moving lines", k)
		}
	}
}

// numbered is a file that is made while it is read.
type numbered struct {
	format string
	left   int
	rest   []byte
}

func (n *numbered) Read(p []byte) (int, error) {
	if len(n.rest) == 0 {
		if n.left == 0 {
			return 0, io.EOF
		}
		n.left--
		n.rest = fmt.Appendf(n.rest, n.format, n.left)
	}
	k := copy(p, n.rest)
	n.rest = n.rest[k:]
	return k, nil
}

// What the reader remembers of an item is within BytesPerItem, with ids and without.
func TestMemoryPerItem(t *testing.T) {
	const items = 500_000
	for _, line := range []string{`{"custom_id":"%d","prompt":"a"}`, `{"prompt":"%d"}`} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := NewReader(&numbered{format: line + "\n", left: items}, Config{DefaultModel: "m"})
		if n, _, err := through(r); err != nil || n != items {
			t.Fatalf("%d %v", n, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		perItem := float64(after.HeapAlloc-before.HeapAlloc-2*lines.ReadBuffer) / items
		t.Logf("%s: %.1f bytes an item", line, perItem)
		if perItem > BytesPerItem {
			t.Errorf("%s: %.1f bytes an item, promised %v", line, perItem, BytesPerItem)
		}
		runtime.KeepAlive(r)
	}
}

// count returns n for the n-th of equal lines, in whatever order they come.
func TestTallyCounts(t *testing.T) {
	var slow [50]int
	fast := tally{keys.Set{Width: idWidth}}
	for i := range 20_000 {
		n := i * i % (1 + i%50)
		if got := fast.count(keys.Sum{byte(n)}); got != slow[n] {
			t.Fatalf("%d was counted %d times, not %d", n, slow[n], got)
		}
		slow[n]++
	}
}

// Where an id stood first is known of the first ids, and found by reading again
// for the others, the ids that lines get by their number included.
func TestFirstLines(t *testing.T) {
	var text strings.Builder
	for n := range 2 * NamedIDs {
		fmt.Fprintf(&text, "{\"id\":\"%d\",\"prompt\":\"a\"}\n", n)
	}
	last := 2*NamedIDs + 1
	fmt.Fprintf(&text, "{\"id\":\"%s\",\"prompt\":\"a\"}\n{\"id\":\"7\",\"prompt\":\"a\"}\n", LineID(last+3))
	fmt.Fprintf(&text, "{\"id\":\"%d\",\"prompt\":\"a\"}\n{\"prompt\":\"a\"}\n", 2*NamedIDs-1)
	_, bad := read(t, text.String(), Config{DefaultModel: "m"})
	if len(bad) != 3 || !strings.Contains(bad[1].Error(), "an earlier line") {
		t.Fatal(bad)
	}
	must.Do(t, FirstLines(strings.NewReader(text.String()), Config{DefaultModel: "m"}, bad))
	for i, line := range []int{8, 2 * NamedIDs, last} {
		if !strings.Contains(bad[i].Reason, fmt.Sprintf("already used on line %d", line)) {
			t.Errorf("got %v, want line %d", bad[i], line)
		}
	}
}

// An id that only looks like that of a line is none: it takes nothing from the line of that number.
func TestAnIDThatIsNoLineIDIsFree(t *testing.T) {
	text := `{"prompt":"q"}` + "\n"
	for _, id := range []string{"line-1", "line-01", "line-0000001", "line-+00001", "line-000001x", "line-000000", "xline-000001"} {
		text += `{"prompt":"q","id":"` + id + `"}` + "\n"
	}
	reqs, bad := read(t, text+`{"prompt":"q","id":"line-000001"}`, Config{DefaultModel: "m"})
	if len(reqs) != 8 || len(bad) != 1 || !errors.Is(bad[0], ErrDuplicateID) || !strings.Contains(bad[0].Reason, "already used on line 1") {
		t.Errorf("%d requests, %v", len(reqs), bad)
	}
}

func ExampleKey() {
	a := Key(ChatCompletions, []byte(`{"model":"m","n":1}`), "")
	b := Key(ChatCompletions, []byte(`{ "n": 1, "model": "m" }`), "")
	fmt.Println(a == b, len(a))
	// Output: true 32
}
