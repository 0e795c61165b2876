package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// The program in the README runs as it stands.
func TestReadmeProgramRuns(t *testing.T) {
	text := must.Get(os.ReadFile("../README.md"))(t)
	_, program, found := strings.Cut(string(text), "```go\npackage main")
	program, _, ended := strings.Cut(program, "```")
	if !found || !ended {
		t.Fatal("the README has no program")
	}
	// Inside the module, so that its imports are found; not in a folder of a package.
	dir := must.Get(os.MkdirTemp(".", "_readme"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "main.go")
	must.Do(t, os.WriteFile(file, []byte("package main"+program), 0o600))
	out, err := exec.Command("go", "run", "./"+file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "100 results:") || !strings.Contains(string(out), "100 streamed") {
		t.Errorf("%v\n%s", err, out)
	}
}
