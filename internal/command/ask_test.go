//go:build unix

package command

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
)

// A run that is asked by SIGUSR1 says how it stands, in lines, also where nothing else is
// shown; and goes on.
func TestAskedHowItStands(t *testing.T) {
	for _, how := range []string{settings.ProgressNone, settings.ProgressPlain} {
		called, answer := make(chan struct{}), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(called)
			<-answer
			fmt.Fprint(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
		}))
		dir := t.TempDir()
		in := filepath.Join(dir, "in.jsonl")
		must.Do(t, os.WriteFile(in, []byte(`{"prompt":"one"}`+"\n"), 0o600))
		cmd := exec.Command("headrace", "run", in, "-o", filepath.Join(dir, "out.jsonl"), "--base-url", server.URL, "--model", "m", "--progress", how)
		stderr := must.Get(cmd.StderrPipe())(t)
		must.Do(t, cmd.Start())
		<-called
		must.Do(t, cmd.Process.Signal(syscall.SIGUSR1))
		var names []string
		lines := bufio.NewScanner(stderr)
		for !slices.Contains(names, "Failed") && lines.Scan() {
			if strings.HasPrefix(lines.Text(), in+" to ") && !strings.Contains(lines.Text(), ": running, 0 of 1 (0 %)") {
				t.Errorf("%s: %s", how, lines.Text())
			}
			name, _, _ := strings.Cut(lines.Text(), "  ")
			names = append(names, strings.TrimSpace(name))
		}
		close(answer)
		for lines.Scan() { // to its end
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		server.Close()
		for _, want := range []string{"Held by", "Ends", "Speed", "Calls", "Spent", "Failed"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s: no %s: %q", how, want, names)
			}
		}
	}
}
