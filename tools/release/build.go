package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// binaries are the files of the two commands, for one target.
type binaries struct{ light, cluster string }

// build compiles both commands for a target.
func (r *release) build(work string, t target) (binaries, error) {
	log.Printf("building %s/%s", t.os, t.arch)
	b := binaries{
		light:   filepath.Join(work, t.os+"-"+t.arch, "headrace"+t.exe()),
		cluster: filepath.Join(work, t.os+"-"+t.arch, "headrace-cluster"+t.exe()),
	}
	if err := r.compile(t, r.root, b.light); err != nil {
		return b, err
	}
	return b, r.compile(t, filepath.Join(r.root, "cluster"), b.cluster)
}

// compile builds ./cmd/headrace of a module. What it depends on is the commit, the version and the
// version of Go: -trimpath leaves folders out, and without cgo no C compiler has a part in it.
func (r *release) compile(t target, module, out string) error {
	flags := fmt.Sprintf("-s -w -X github.com/headrace/headrace/internal/command/account.release=%s", r.version)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags", flags, "-o", out, "./cmd/headrace")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w\n%s", filepath.Base(out), t.os, t.arch, err, said)
	}
	info, err := buildinfo.ReadFile(out)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" }) {
		return fmt.Errorf("%s has no commit: go build finds git only in a clone, not in a linked worktree", filepath.Base(out))
	}
	return nil
}

// output runs a command at the root of the repository and returns its output.
func (r *release) output(name string, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, said.String())
	}
	return out.String(), nil
}
