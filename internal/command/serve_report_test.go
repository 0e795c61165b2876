//go:build unix

package command

import (
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// A server shows itself without a token, and its page ends with it. Its report has its clients, classes and waits, and
// no secret.
func TestReportOfServe(t *testing.T) {
	folder := t.TempDir()
	s := startServing(t, folder, "--provider", "sim", "--sim-profile", "fast", "--state", "serve.state.json", "--metrics-addr", "127.0.0.1:0", "--progress", "plain")
	s.says("the server is shown at ")
	url := regexp.MustCompile(`shown at (\S+)`).FindStringSubmatch(s.said.String())[1]
	for k := range 6 {
		class, client := []string{"interactive", "batch"}[k%2], []string{"alice", "bob", "carol"}[k%3]
		if status, text, _ := s.chat(`{"model":"m","messages":[{"role":"user","content":"a secret prompt"}]}`, "X-Headrace-Priority", class, "X-Headrace-Client", client); status != 200 {
			t.Fatal(text)
		}
	}
	if status, _, _ := s.chat(`{"model":`); status < 400 {
		t.Error("nonsense was answered")
	}
	stream := streamOf(t, url)
	page := scrape(t, url)
	for _, part := range []string{"6 requests answered", "alice", "interactive", "none (simulated)"} {
		if !strings.Contains(page, part) {
			t.Errorf("no %s in %s", part, page)
		}
	}
	if text := scrape(t, url+"metrics"); !strings.Contains(text, `headrace_serve_requests_total{class="batch",client="alice"`) {
		t.Error(text)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	last, end := false, false
	for stream.Scan() {
		last = last || strings.Contains(stream.Text(), "this is its last state")
		end = end || stream.Text() == "event: end"
	}
	if !last || !end {
		t.Errorf("the page's stream ended without its last state (%v) or without an end (%v)", last, end)
	}
	cmd := exec.Command("headrace", "report", "serve.state.json")
	cmd.Dir = folder
	text := string(must.Get(cmd.CombinedOutput())(t))
	if !strings.Contains(text, "## 6 requests answered") || !strings.Contains(text, "| batch | 3 | 0 |") || !strings.Contains(text, "| carol | 2 |") || strings.Contains(text, "goes on") {
		t.Error(text)
	}
	for _, secret := range []string{"a secret prompt", s.token, "sk-of-the-provider"} {
		if strings.Contains(page+text+read(t, folder+"/serve.state.report.json"), secret) {
			t.Errorf("it has %q", secret)
		}
	}
	cmd = exec.Command("headrace", "report", "serve.state.json", "-o", "serve.html")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(read(t, folder+"/serve.html"), "<!doctype html><!-- headrace report -->") {
		t.Errorf("%v: %s", err, out)
	}
}
