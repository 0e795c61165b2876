package command

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
)

// serveChat answers each chat, and calls atFirst before the first answer.
func serveChat(t *testing.T, atFirst func()) (base string) {
	t.Helper()
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		once.Do(atFirst)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// An input that is truncated or appended to during a run is said to have changed, with exit code 1, a
// number of items not run that can be true, and the command that asks what is left. That command does it.
func TestRunSaysThatItsInputChanged(t *testing.T) {
	line := func(id string) string {
		return `{"id":"` + id + `","prompt":"` + strings.Repeat("p", 2000) + `"}` + "\n"
	}
	var b strings.Builder
	b.WriteString(line("a"))
	for n := range 1999 { // more than is read ahead
		b.WriteString(line(strconv.Itoa(n)))
	}
	whole := b.String()
	for _, c := range []struct{ name, more, said, left string }{
		{"truncated", "", "the input changed after it was checked", "0 to do"},
		{"appended", line("g"), "2000 items were checked and 2001 were read", "0 to do"},
		{"appended twice", line("a"), `:2001: custom_id "a" is already used on line 1: give each line its own id (the input changed after it was checked)`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
			file, err := os.OpenFile(in, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			write := func(text string) {
				if text == "" {
					err = file.Truncate(int64(len(line("a"))))
				} else {
					_, err = file.WriteString(text)
				}
				if err != nil {
					t.Error(err)
				}
			}
			write(whole)
			args := []string{"run", in, "-o", out, "--model", "m", "--durable", "os", "--base-url", serveChat(t, func() { write(c.more) })}
			code, _, stderr := inWorld(t, nil, nil, args...)
			last := stderr[strings.LastIndex(strings.TrimRight(stderr, "\n"), "\n")+1:]
			if code != exit.ItemsFailed || !strings.Contains(stderr, c.said) || !strings.HasPrefix(last, "headrace run ") {
				t.Errorf("exit %d, %s", code, stderr)
			}
			if strings.Contains(stderr, "not run        -") || c.name == "truncated" && strings.Contains(stderr, "not run") {
				t.Errorf("not run: %s", stderr)
			}
			code, _, stderr = inWorld(t, nil, nil, args...)
			if twice := c.name == "appended twice"; twice != (code == exit.Usage) || !twice && code != exit.OK || !strings.Contains(stderr, c.left) {
				t.Errorf("the next run: exit %d, %s", code, stderr)
			}
		})
	}
}
