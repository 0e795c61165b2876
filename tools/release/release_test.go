package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/goccy/go-yaml"
)

var then = time.Unix(1_700_000_000, 0).UTC()

// An archive depends on its files alone, and not on the order in which they were found.
func TestArchivesOfTheSameFilesAreEqual(t *testing.T) {
	files := []file{{"b", []byte("second"), 0o644}, {"a/x", []byte("first"), 0o755}, {"a/b/c", []byte("third"), 0o644}}
	one, err := tarGz(files, then)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	other, err := tarGz(files, then)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) {
		t.Error("the order of the files shows in the archive")
	}
	z, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(then) || h.Uname != "root" || h.Uid != 0 {
			t.Errorf("%+v", h)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "a/b/c a/x b" {
		t.Error(got)
	}
}

// Man pages and completions are found in any order, and no archive shows it.
func TestArchivesDoNotShowTheOrderOfTheirFiles(t *testing.T) {
	r := &release{root: "../..", version: "1.2.3", at: then, out: t.TempDir(), sums: map[string]string{}}
	files := []file{{"man/b.1", []byte("second"), 0o644}, {"man/a.1", []byte("first"), 0o644}}
	for _, target := range []target{{"linux", "amd64"}, {"windows", "amd64"}} {
		if err := r.archive(target, files); err != nil {
			t.Fatal(err)
		}
		one := maps.Clone(r.sums)
		slices.Reverse(files)
		if err := r.archive(target, files); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(one, r.sums) {
			t.Errorf("%s: the order of the files shows", target.os)
		}
	}
}

// A Debian package has the time of the commit, and none of the build; nothing else of the machine is in it.
func TestDebianPackagesAreEqual(t *testing.T) {
	r := &release{root: "../..", version: "1.2.3", at: then, out: t.TempDir(), sums: map[string]string{}}
	write := func() []byte {
		t.Helper()
		if err := r.debian(target{"linux", "arm64"}, file{"headrace", []byte("binary"), 0o755}, []file{{"man/headrace.1", []byte("page"), 0o644}}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(r.out, "headrace_1.2.3_arm64.deb"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one := write()
	if !bytes.Equal(one, write()) {
		t.Error("two packages of the same files differ")
	}
	if !bytes.HasPrefix(one, []byte("!<arch>\ndebian-binary   1700000000  ")) {
		t.Errorf("%q", one[:min(60, len(one))])
	}
}

// The formula names each archive for macOS and Linux with its own checksum.
func TestFormulaNamesEachArchive(t *testing.T) {
	r := &release{version: "1.2.3", sums: map[string]string{}}
	for _, target := range allTargets {
		r.sums["headrace_1.2.3_"+target.os+"_"+target.arch+".tar.gz"] = "sum-of-" + target.os + "-" + target.arch
	}
	text := r.formula()
	for _, target := range allTargets[:4] {
		name := target.os + "_" + target.arch + ".tar.gz\"\n      sha256 \"sum-of-" + target.os + "-" + target.arch + "\""
		if strings.Count(text, name) != 1 {
			t.Errorf("not once: %s in\n%s", name, text)
		}
	}
}

// A version that is not that of the file VERSION stops the release before it empties a folder.
func TestPublishedVersionIsThatOfTheFile(t *testing.T) {
	out := t.TempDir()
	kept := filepath.Join(out, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := run("host", out, "99.0.0")
	if _, gone := os.Stat(kept); err == nil || !strings.Contains(err.Error(), "want 99.0.0") || gone != nil {
		t.Error(err, gone)
	}
}

// goreleaser builds nothing itself: it has this command fill a folder, and publishes each file from there once.
func TestGoreleaserPublishesEachFileOnce(t *testing.T) {
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type glob struct{ Glob string }
	var config struct {
		Before   struct{ Hooks []string }
		Builds   []struct{ Skip bool }
		Checksum struct {
			Files []glob `yaml:"extra_files"`
		}
		Release struct {
			Files []glob `yaml:"extra_files"`
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.Before.Hooks, []string{"go -C tools/release run . -o ../../dist -version {{ .Version }}"}) || len(config.Builds) != 1 || !config.Builds[0].Skip {
		t.Errorf("%+v", config)
	}
	if !slices.Equal(config.Checksum.Files, config.Release.Files) {
		t.Errorf("sums of %v, and %v are published", config.Checksum.Files, config.Release.Files)
	}
	r := &release{root: "../..", version: "1.2.3", out: t.TempDir(), sums: map[string]string{}}
	command, example := file{"headrace", nil, 0o755}, file{"examples/prompts.jsonl", nil, 0o644}
	for _, target := range allTargets {
		if err := errors.Join(r.archive(target, nil), r.wheel(target, command, example, nil), r.npmPlatform(target, command, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.npmMain(), r.debian(allTargets[0], command, nil), r.write("headrace.rb", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for name := range r.sums {
		matches := 0
		for _, g := range config.Release.Files {
			if ok, err := path.Match(g.Glob, "dist/"+name); err != nil {
				t.Fatal(err)
			} else if ok {
				matches++
			}
		}
		if matches != 1 {
			t.Errorf("%s is published %d times", name, matches)
		}
	}
}

// A target that nobody can build is refused by its name, and so is one that is named twice: five times the
// same would count as all.
func TestTargets(t *testing.T) {
	if list, err := parseTargets("linux/arm64,windows/amd64"); err != nil || !slices.Equal(list, []target{{"linux", "arm64"}, {"windows", "amd64"}}) {
		t.Error(list, err)
	}
	if _, err := parseTargets("linux/amd64,plan9/amd64"); err == nil || !strings.Contains(err.Error(), "plan9/amd64") {
		t.Error(err)
	}
	if list, err := parseTargets("linux/amd64,linux/amd64"); err == nil {
		t.Error(list)
	}
}

// A module's licences are found in all its folders, each once; a module without any stops the release.
func TestLicences(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("license.go", "package x")
	write("testdata/LICENSE", "of test data")
	var text bytes.Buffer
	if err := moduleLicences(&text, "example.com/m@v1.0.0", folder); err == nil {
		t.Error("a module without a licence is let in")
	}
	write("LICENSE.txt", "its own")
	write("copied/COPYING", "of a copy")
	write("copied/again/LICENCE", "of a copy")
	if err := moduleLicences(&text, "example.com/m@v1.0.0", folder); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); strings.Count(got, "its own") != 1 || strings.Count(got, "of a copy") != 1 || strings.Contains(got, "test data") {
		t.Error(got)
	}
}

// A man page says what the help says: a line that begins with a dot stays a line, and dashes stay dashes.
func TestManPage(t *testing.T) {
	got := string(manPage("x-run", "runs -o", "first\n.hidden \\n\n  --flag\n", "1.2.3", then))
	want := `.TH X-RUN 1 2023-11-14 "headrace 1.2.3" "User Commands"
.SH NAME
x\-run \- runs \-o
.SH DESCRIPTION
.nf
\&first
\&.hidden \en
\&  \-\-flag
.fi
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

// The compose file is read by its form, and gives the command no right that it does not need.
func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("../../contrib/container/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Image       string
			Command     []string
			User        string
			Environment []string
			Volumes     []string
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			SecurityOpt []string `yaml:"security_opt"`
			StopGrace   string   `yaml:"stop_grace_period"`
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &compose, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	s := compose.Services["headrace"]
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.User == "" || s.Command[0] != "run" {
		t.Errorf("%+v", s)
	}
}

// The unit is read by its form, runs the command that the Debian package installs, and does not start it
// again after an exit that a start cannot mend.
func TestSystemdUnit(t *testing.T) {
	f, err := os.Open("../../contrib/container/headrace@.service")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	options, err := unit.DeserializeOptions(f)
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]string{}
	for _, o := range options {
		is[o.Section+"."+o.Name] = o.Value
	}
	if !strings.HasPrefix(is["Service.ExecStart"], "/usr/bin/headrace run ") || is["Service.DynamicUser"] != "yes" ||
		is["Service.RestartPreventExitStatus"] != "1 2 3 4" || is["Service.StateDirectory"] != "headrace" {
		t.Error(is)
	}
}

// The container file starts from nothing, has roots of certificates, and a user without rights.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile("../../contrib/container/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"FROM scratch\n", "USER 65534:65534\n", "ca-certificates.crt /etc/ssl/certs/ca-certificates.crt\n"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %q", line)
		}
	}
	if n := bytes.Count(certificates(), []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("%d certificates", n)
	}
}
