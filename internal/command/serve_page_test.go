//go:build unix

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// The commands of the page about serve that need no package of others do what it says, against a server that
// its first lines name. Its file of clients is taken as it is.
func TestPageOfServe(t *testing.T) {
	folder := t.TempDir()
	text := string(must.Get(os.ReadFile("../../docs/serve.md"))(t))
	s := startServing(t, folder, "--provider", "sim", "--sim-profile", "fast")
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		language, code := block[1], block[2]
		var cmd *exec.Cmd
		switch {
		case language == "sh" && strings.HasPrefix(code, "curl"):
			cmd = exec.Command("sh", "-ec", code)
		case language == "python" && strings.Contains(code, "urllib"):
			cmd = exec.Command("python3", "-c", code)
		case language == "js" && strings.Contains(code, "fetch("):
			file := filepath.Join(folder, "page.mjs")
			must.Do(t, os.WriteFile(file, []byte(code), 0o600))
			cmd = exec.Command("node", file)
		case language == "yaml":
			must.Do(t, os.WriteFile(filepath.Join(folder, "clients.yaml"), []byte(code), 0o600))
			startServing(t, folder, "--provider", "sim", "--clients", "clients.yaml")
			continue
		default:
			continue
		}
		if _, err := exec.LookPath(cmd.Args[0]); err != nil {
			t.Logf("there is no %s here", cmd.Args[0])
			continue
		}
		cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+s.base+"/v1", "OPENAI_API_KEY="+s.token)
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(said), "imulated answer") && !strings.Contains(string(said), `"Simu"`) {
			t.Errorf("%s: %v: %s", code, err, said)
		}
		ran++
	}
	if ran == 0 {
		t.Error("nothing was run")
	}
	unit := must.Get(os.ReadFile("../../examples/serve/headrace-serve.service"))(t)
	_, help, _ := inWorld(t, strings.NewReader(""), nil, "serve", "--help")
	_, ofRun, _ := inWorld(t, strings.NewReader(""), nil, "run", "--help")
	help += ofRun // the page tells of runs next to it
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(string(unit)+text, -1) {
		if !strings.Contains(help, flag) && flag != "--unix-socket" && flag != "--limit-name" { // of a cluster: its own tests look at that
			t.Errorf("there is no %s", flag)
		}
	}
}
