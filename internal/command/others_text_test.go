package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
)

// evil would colour a terminal, clear it, turn its text round, and forge a line of ours.
const evil = "m\x1b[31m\u009b2J\u202e\x7f\r\nheadrace: forged"

// eraseLine erases the live line before it is drawn again.
const eraseLine = "\r\x1b[K"

// Words of others (models, ids, what servers say) steer no terminal and make no line, in
// whatever command, manner and log.
func TestTextOfOthersIsPrintable(t *testing.T) {
	var refused atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		evilAnswer(w, r, func() bool { return refused.Add(1)%2 == 1 })
	}))
	defer server.Close()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	writeEvil(t, in)
	evilRun := []string{
		"run", in, "-o", out, "--fresh", "--base-url", server.URL, "--max-attempts", "1",
		"--log-level", "debug", "--law", "plain", "--long-wait", "1ms", "--forget",
	}
	for name, args := range map[string][]string{
		"plain":     append(slices.Clip(evilRun), "--progress", "plain"),
		"json":      append(slices.Clip(evilRun), "--progress", "json"),
		"none":      append(slices.Clip(evilRun), "--progress", "none"),
		"bar":       append(slices.Clip(evilRun), "--progress", "bar"),
		"status":    {"status", out, "--input", in},
		"plan":      {"plan", in},
		"plan json": {"plan", in, "--json"},
		"bad model": {"run", filepath.Join(dir, "none\n"+evil), "-o", out},
		"bad flag":  {"run", in, "-o", out, "--progress", evil},
		"bad lines": {"run", badLinesOf(t, dir), "-o", filepath.Join(dir, "bad.jsonl"), "--provider", "sim"},
		"command":   {evil},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "status" {
				_, _, _ = inWorld(t, nil, nil, evilRun...)
			}
			var shown strings.Builder
			w := &world.World{
				Name: "headrace", Args: args, Stdout: &shown, Stderr: &shown, Clock: clockwork.NewRealClock(),
				Env:     func(string) (string, bool) { return "", false },
				Signals: make(chan os.Signal), Release: func() {},
			}
			_ = Run(t.Context(), w)
			if kind := strings.Fields(name)[0]; (kind == "plain" || kind == "bar" || kind == "json") && !strings.Contains(shown.String(), "cooling") {
				t.Errorf("nothing was said of the lane: %s", shown.String())
			}
			harmless(t, strings.ReplaceAll(shown.String(), eraseLine, "\n"))
			if strings.Contains(name, "json") {
				jsonOnly(t, shown.String())
			}
		})
	}
}

// evilAnswer answers and fails in every way in which a server has a word.
func evilAnswer(w http.ResponseWriter, r *http.Request, refuse func() bool) {
	body, _ := io.ReadAll(r.Body)
	quoted, _ := json.Marshal(evil)
	w.Header().Set("X-Request-Id", "\u009b2J")
	switch {
	case strings.Contains(string(body), "429") && refuse():
		w.Header().Set("Retry-After-Ms", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	case strings.Contains(string(body), "400"):
		w.WriteHeader(http.StatusBadRequest)
	default:
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":%s}]}`, quoted)
		return
	}
	fmt.Fprintf(w, `{"error":{"message":%s,"code":%s,"type":%s}}`, quoted, quoted, quoted)
}

// writeEvil writes prompts with such models and ids: one is answered, one is refused for
// good, and one has its model cool.
func writeEvil(t *testing.T, path string) {
	t.Helper()
	quoted := must.Get(json.Marshal(evil))(t)
	var text strings.Builder
	for _, prompt := range []string{"200", "400", "429"} {
		fmt.Fprintf(&text, `{"id":%s,"model":%s,"prompt":"%s"}`+"\n", strings.Replace(string(quoted), "m", prompt, 1), quoted, prompt)
	}
	must.Do(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

func badLinesOf(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "bad\nheadrace: forged")
	quoted, _ := json.Marshal(evil)
	text := fmt.Sprintf(`{"id":%[1]s,"prompt":"a"}
{"id":%[1]s,"prompt":"b"}
{"id":"c","url":%[1]s,"body":{"model":"m","messages":[]}}
{"id":"d","prompt":%[2]s}
`, quoted, evil[:4])
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// forged is a line that begins as one of ours and is not.
var forged = regexp.MustCompile(`^(headrace: )+forged`)

// harmless fails the test if a terminal would obey anything in a text, or a line of it is
// not ours.
func harmless(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }) || forged.MatchString(line) {
			t.Errorf("a terminal would obey %q", line)
		}
	}
}

func jsonOnly(t *testing.T, text string) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		switch err := d.Decode(&v); {
		case err == io.EOF:
			return
		case err != nil:
			if rest := text[d.InputOffset():]; !strings.HasPrefix(strings.TrimSpace(rest), "headrace: ") { // the ending is for people
				t.Errorf("%v: %s", err, rest)
			}
			return
		}
	}
}
