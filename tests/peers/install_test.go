package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The script installs nothing unless PEERS_INSTALL=1 asks for it, also as root, and says
// what it skips.
func TestScriptInstallsNothingUnasked(t *testing.T) {
	_, here, _, _ := runtime.Caller(0) // the script runs these tests from another folder
	for _, value := range []string{"", "0"} {
		bin := t.TempDir()
		installed := filepath.Join(bin, "installed")
		stub(t, bin, "id", "echo 0")
		stub(t, bin, "apt-get", "echo \"$@\" >>"+installed)
		stub(t, bin, "go", "exit 7") // what comes after that is not asked about
		cmd := exec.Command("bash", filepath.Join(filepath.Dir(here), "run"), "short")
		cmd.Env = []string{
			"PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + bin, "PEERS_INSTALL=" + value,
			"BASH_FUNC_command%%=() { case $2 in nginx|haproxy|prometheus|promtool) return 1;; esac; builtin command \"$@\"; }",
		}
		said, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 7 {
			t.Fatalf("%v: %s", err, said)
		}
		for _, server := range []string{"all rows of nginx", "all rows of haproxy", "prometheus"} {
			if !strings.Contains(string(said), "skipped: "+server) {
				t.Errorf("PEERS_INSTALL=%s: it does not say that it skips %s: %s", value, server, said)
			}
		}
		if what, err := os.ReadFile(installed); err == nil {
			t.Errorf("PEERS_INSTALL=%s: installed: %s", value, what)
		}
	}
}

func stub(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
