package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// debianPlaces says where the files of a package belong on Debian, by the beginning of their names.
var debianPlaces = []struct{ from, to string }{
	{"man/", "usr/share/man/man1/"},
	{"completions/headrace.bash", "usr/share/bash-completion/completions/headrace"},
	{"completions/_headrace", "usr/share/zsh/vendor-completions/_headrace"},
	{"completions/headrace.fish", "usr/share/fish/vendor_completions.d/headrace.fish"},
	{"completions/", ""}, // no other shell
	{"LICENSE", "usr/share/doc/headrace/copyright"},
	{"", "usr/share/doc/headrace/"},
}

// debian writes the Debian package of a target, with the light command.
func (r *release) debian(t target, command file, papers []file) error {
	unit, err := entry("examples/headrace@.service", filepath.Join(r.root, "contrib/container/headrace@.service"), 0o644)
	if err != nil {
		return err
	}
	placed := under("usr/bin/", []file{command})
	for _, f := range append(slices.Clone(papers), unit) {
		if strings.HasPrefix(f.name, "man/headrace-cluster") {
			continue
		}
		for _, place := range debianPlaces {
			rest, ok := strings.CutPrefix(f.name, place.from)
			if !ok {
				continue
			}
			if place.to != "" {
				placed = append(placed, file{place.to + rest, f.data, f.mode})
			}
			break
		}
	}
	sources, err := os.MkdirTemp("", "headrace-debian-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(sources) }()
	var contents files.Contents
	for i, f := range placed {
		source := filepath.Join(sources, strconv.Itoa(i))
		if err := os.WriteFile(source, f.data, 0o600); err != nil {
			return err
		}
		contents = append(contents, &files.Content{Source: source, Destination: "/" + f.name, FileInfo: &files.ContentFileInfo{Mode: f.mode}})
	}
	var data bytes.Buffer
	err = deb.Default.Package(nfpm.WithDefaults(&nfpm.Info{
		Name: "headrace", Version: r.version, Arch: t.arch, Section: "utils", Maintainer: "The headrace authors <headrace@users.noreply.github.com>",
		Homepage: "https://github.com/headrace/headrace", License: "MIT", MTime: r.at,
		Description:  summary + "\nAs fast as the provider allows, without tripping its limits twice, and without\nlosing or repeating an item.",
		Overridables: nfpm.Overridables{Contents: contents}, DisableGlobbing: true,
	}), &data)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("headrace_%s_%s.deb", r.version, t.arch), data.Bytes(), 0o644)
}
