package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
)

// shortKeys accepts one key at a time, and gives out the next after so many answers. Like a
// program that keeps a file fresh, it writes the key down before the key counts.
type shortKeys struct {
	file  string
	lives int // answers to each
	stops int // keys that are given out; then the last one ends, too. 0: there is always a next one

	mu       sync.Mutex // for what follows
	key      int
	answered int
	refused  int
	stranger string // what came that is no key
	fault    error
}

func (s *shortKeys) name() string { return fmt.Sprintf("key-%d-0123456789", s.key) }

// next gives out the next key. A reader never sees half of one.
func (s *shortKeys) next() error {
	s.key++
	if s.stops > 0 && s.key > s.stops {
		return nil
	}
	if err := os.WriteFile(s.file+".new", []byte(s.name()+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(s.file+".new", s.file)
}

func (s *shortKeys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // so that the connection stays
	s.mu.Lock()
	defer s.mu.Unlock()
	came := r.Header.Get("X-Api-Key")
	if !strings.HasPrefix(came, "key-") {
		s.stranger = came
	}
	if came != s.name() {
		s.refused++
		says(http.StatusUnauthorized, "application/json", `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)(w, r)
		return
	}
	if s.answered++; s.answered%s.lives == 0 {
		s.fault = s.next()
	}
	says(http.StatusOK, "application/json", `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)(w, r)
}

func newShortKeys(t *testing.T, lives, stops int) (s *shortKeys, flags []string) {
	t.Helper()
	s = &shortKeys{file: filepath.Join(t.TempDir(), "key"), lives: lives, stops: stops}
	must.Do(t, s.next())
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	in := writeLines(t, strings.Repeat(`{"prompt":"hi"}`+"\n", 200))
	return s, []string{in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--provider", "anthropic", "--base-url", server.URL, "--api-key-file", s.file, "--model", "m"}
}

// A key that ends in the middle of a run, and is replaced in its file, costs no item: calls
// that bore the old one are made again.
func TestKeyFileChangesWhileItRuns(t *testing.T) {
	s, flags := newShortKeys(t, 25, 0)
	said := runs(t, nil, append(flags, "-c", "8")...) // fewer than the answers to a key

	results := resultsOf(t, flags[2])
	if len(results) != 200 || s.answered != 200 || s.refused == 0 || s.stranger != "" || s.fault != nil {
		t.Errorf("%d results, %d answers, %d refusals of %d keys, stranger %q, %v: %s", len(results), s.answered, s.refused, s.key, s.stranger, s.fault, said)
	}
	if strings.Contains(said+read(t, flags[2]), "-0123456789") {
		t.Error("there is a key in what is shown")
	}
	if _, err := os.Stat(strings.TrimSuffix(flags[2], ".jsonl") + ".errors.jsonl"); err == nil {
		t.Error("there are failures")
	}
	again := 0
	for _, line := range results {
		again += line.Headrace.Attempts - 1
	}
	if again > s.refused/4 { // a process that is kept waiting may meet two ends with one call
		t.Errorf("%d attempts more for %d refusals: a key that ended is counted as a fault", again, s.refused)
	}
}

// A key that ends, and is not replaced, stops the run at once, and the file is named.
func TestKeyFileIsNotKeptFresh(t *testing.T) {
	s, flags := newShortKeys(t, 15, 2)
	code, said := runsTo(t, nil, append(flags, "-c", "4")...)
	if results := resultsOf(t, flags[2]); code != exit.Stopped || len(results) != 30 || !strings.Contains(said, s.file) || strings.Contains(said, "-0123456789") {
		t.Errorf("exit code %d with %d results: %s", code, len(results), said)
	}
	if s.refused > 2*4+15 {
		t.Errorf("%d refusals", s.refused)
	}
}
