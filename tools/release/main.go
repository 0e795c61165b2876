package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A target is a platform that a release is for.
type target struct{ os, arch string }

var allTargets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

func (t target) exe() string {
	if t.os == "windows" {
		return ".exe"
	}
	return ""
}

// A release is what all its packages have in common.
type release struct {
	root    string // the repository
	version string
	at      time.Time // of the commit: the time of every file
	out     string
	sums    map[string]string // by the names of the files in out
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	targets := flag.String("targets", "all", "all, host, or a list such as linux/amd64,darwin/arm64")
	want := flag.String("version", "", "version that VERSION must have; default: any")
	out := flag.String("o", "../../dist", "folder to write; it is emptied first")
	flag.Parse()
	if err := run(*targets, *out, *want); err != nil {
		log.Fatal(err)
	}
}

// run empties the folder and writes the whole release into it. It always builds for this machine,
// whose binaries print the man pages and completions. The formula needs the archives of all
// targets, and is left out if one is missing. A version that is not the wanted one stops it before.
func run(names, out, want string) error {
	targets, err := parseTargets(names)
	if err != nil {
		return err
	}
	r := &release{sums: map[string]string{}}
	if r.root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err = r.identify(); err != nil {
		return err
	}
	if want != "" && r.version != want {
		return fmt.Errorf("VERSION is %s: want %s, the version that is to be published", r.version, want)
	}
	if err = os.RemoveAll(r.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "headrace-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	// Man pages and completions are what the commands themselves say: those of this machine.
	host := target{runtime.GOOS, runtime.GOARCH}
	said, err := r.build(work, host)
	if err != nil {
		return err
	}
	// The linker ignores a variable that is not there.
	words, err := r.output(said.light, "--version")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(words, "headrace "+r.version+" commit ") {
		return fmt.Errorf("headrace --version says %q: want version %s and its commit", words, r.version)
	}
	papers, err := r.handPages(said)
	if err != nil {
		return err
	}
	for _, t := range targets {
		b := said
		if t != host {
			if b, err = r.build(work, t); err != nil {
				return err
			}
		}
		if err = r.pack(t, b, papers); err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
	}
	if err = r.npmMain(); err != nil {
		return err
	}
	if len(targets) == len(allTargets) { // the formula names the checksum of each archive
		if err = r.write("headrace.rb", []byte(r.formula()), 0o644); err != nil {
			return err
		}
	}
	return r.checksums()
}

// parseTargets reads a list of targets, "all" or "host". Only platforms that a release is for are
// valid.
func parseTargets(names string) ([]target, error) {
	switch names {
	case "all":
		return allTargets, nil
	case "host":
		names = runtime.GOOS + "/" + runtime.GOARCH
	}
	var list []target
	for name := range strings.SplitSeq(names, ",") {
		goos, arch, _ := strings.Cut(name, "/")
		t := target{goos, arch}
		if !slices.Contains(allTargets, t) {
			return nil, fmt.Errorf("target %q is invalid: want all, host, or some of %v", name, allTargets)
		}
		if slices.Contains(list, t) {
			return nil, fmt.Errorf("target %q is invalid: want each platform once", name)
		}
		list = append(list, t)
	}
	return list, nil
}

// identify reads the version and the time of the commit, and checks that the changelog knows the
// version.
func (r *release) identify() error {
	text, err := os.ReadFile(filepath.Join(r.root, "VERSION"))
	if err != nil {
		return err
	}
	r.version = strings.TrimSpace(string(text))
	changes, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(changes), "## ["+r.version+"]") && !strings.Contains(string(changes), "What will be "+r.version+".") {
		return fmt.Errorf("CHANGELOG.md has no version %s", r.version)
	}
	stamp, err := r.output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(stamp), 10, 64)
	r.at = time.Unix(seconds, 0).UTC()
	return err
}

// pack writes all packages of a target.
func (r *release) pack(t target, b binaries, papers []file) error {
	own, err := r.ownPapers(b.light)
	if err != nil {
		return err
	}
	both, err := r.ownPapers(b.light, b.cluster)
	if err != nil {
		return err
	}
	command, err := entry("headrace"+t.exe(), b.light, 0o755)
	if err != nil {
		return err
	}
	cluster, err := entry("headrace-cluster"+t.exe(), b.cluster, 0o755)
	if err != nil {
		return err
	}
	example, err := entry("examples/prompts.jsonl", filepath.Join(r.root, "examples/prompts.jsonl"), 0o644)
	if err != nil {
		return err
	}
	if err = r.archive(t, slices.Concat([]file{command, cluster, example}, both, papers)); err != nil {
		return err
	}
	if err = r.wheel(t, command, example, own); err != nil {
		return err
	}
	if err = r.npmPlatform(t, command, own); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	if err = r.debian(t, command, slices.Concat([]file{example}, own, papers)); err != nil {
		return err
	}
	return r.container(t, slices.Concat([]file{command}, own))
}

// archive writes the archive of a target: everything, in a folder of its own.
func (r *release) archive(t target, files []file) error {
	name := fmt.Sprintf("headrace_%s_%s_%s", r.version, t.os, t.arch)
	for _, doc := range []string{"README.md", "CHANGELOG.md", "contrib/container/compose.yaml", "contrib/container/headrace@.service"} {
		f, err := entry(filepath.Base(doc), filepath.Join(r.root, doc), 0o644)
		if err != nil {
			return err
		}
		if filepath.Dir(doc) != "." {
			f.name = "examples/" + f.name
		}
		files = append(files, f)
	}
	files = under(name+"/", files)
	if t.os == "windows" {
		data, err := zipOf(sorted(files), r.at)
		if err != nil {
			return err
		}
		return r.write(name+".zip", data, 0o644)
	}
	data, err := tarGz(files, r.at)
	if err != nil {
		return err
	}
	return r.write(name+".tar.gz", data, 0o644)
}

// container writes the folder that the container file builds an image from. Under this name podman
// and docker find it.
func (r *release) container(t target, files []file) error {
	recipe, err := entry("Dockerfile", filepath.Join(r.root, "contrib/container/Containerfile"), 0o644)
	if err != nil {
		return err
	}
	for _, f := range append(files, recipe, file{"ca-certificates.crt", certificates(), 0o644}) {
		if err := r.write(fmt.Sprintf("container-%s-%s/%s", t.os, t.arch, f.name), f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file of the release and keeps its checksum.
func (r *release) write(name string, data []byte, mode os.FileMode) error {
	path := filepath.Join(r.out, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	r.sums[name] = fmt.Sprintf("%x", sha256.Sum256(data))
	log.Printf("%s, %.1f MB", name, float64(len(data))/1e6)
	return os.WriteFile(path, data, mode)
}

// checksums writes the checksums in the form that sha256sum -c reads.
func (r *release) checksums() error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		fmt.Fprintf(&text, "%s  %s\n", r.sums[name], name)
	}
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(text.String()), 0o644)
}
