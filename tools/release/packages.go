package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wheelTags says on which platforms pip may install a target's wheel. The binary is static, so any
// Linux will do; Go 1.26 needs macOS 12.
var wheelTags = map[target][]string{
	{"linux", "amd64"}:   {"manylinux2014_x86_64", "musllinux_1_1_x86_64"},
	{"linux", "arm64"}:   {"manylinux2014_aarch64", "musllinux_1_1_aarch64"},
	{"darwin", "amd64"}:  {"macosx_12_0_x86_64"},
	{"darwin", "arm64"}:  {"macosx_12_0_arm64"},
	{"windows", "amd64"}: {"win_amd64"},
}

const summary = "Run prompt files against rate-limited model APIs, every item exactly once"

// wheel writes the Python package of a target: the module in contrib/python with the command in it.
func (r *release) wheel(t target, command, example file, papers []file) error {
	module, err := folder(filepath.Join(r.root, "contrib/python/headrace"))
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(r.root, "contrib/python/README.md"))
	if err != nil {
		return err
	}
	tags := wheelTags[t]
	info := "headrace-" + r.version + ".dist-info/"
	files := under("headrace/", append(module, command, example))
	files = append(files, under(info+"licenses/", papers)...)
	files = append(files,
		file{info + "METADATA", fmt.Appendf(nil, "Metadata-Version: 2.1\nName: headrace\nVersion: %s\nSummary: %s\nHome-page: https://github.com/headrace/headrace\nLicense: MIT\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n%s", r.version, summary, readme), 0o644},
		file{info + "WHEEL", fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: headrace\nRoot-Is-Purelib: false\nTag: py3-none-%s\n", strings.Join(tags, "\nTag: py3-none-")), 0o644},
		file{info + "entry_points.txt", []byte("[console_scripts]\nheadrace = headrace.__main__:main\n"), 0o644},
	)
	files = sorted(files)
	var record bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	data, err := zipOf(append(files, file{info + "RECORD", record.Bytes(), 0o644}), r.at)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("headrace-%s-py3-none-%s.whl", r.version, strings.Join(tags, ".")), data, 0o644)
}

// folder returns the files in a folder that belong into a package.
func folder(root string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "__pycache__" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		f, err := entry(filepath.ToSlash(name), path, mode)
		files = append(files, f)
		return err
	})
	return files, err
}

// nodePlatform returns the names that Node.js has for a target.
func nodePlatform(t target) (platform, arch string) {
	platform, arch = t.os, t.arch
	if platform == "windows" {
		platform = "win32"
	}
	if arch == "amd64" {
		arch = "x64"
	}
	return platform, arch
}

// npmPlatform writes the npm package with the command of a target. npm installs only that of its own
// platform, as an optional dependency of the main package.
func (r *release) npmPlatform(t target, command file, papers []file) error {
	platform, arch := nodePlatform(t)
	about, err := json.MarshalIndent(map[string]any{
		"name": "@headrace/" + platform + "-" + arch, "version": r.version, "description": summary + ": the command for " + platform + "-" + arch,
		"license": "MIT", "homepage": "https://github.com/headrace/headrace", "os": []string{platform}, "cpu": []string{arch}, "preferUnplugged": true,
	}, "", "  ")
	if err != nil {
		return err
	}
	files := append(under("bin/", []file{command}), file{"package.json", append(about, '\n'), 0o644})
	return r.npm(fmt.Sprintf("headrace-%s-%s", platform, arch), append(files, papers...))
}

// npmMain writes the npm package that people name: contrib/npm, with the version and the platforms filled in.
func (r *release) npmMain() error {
	files, err := folder(filepath.Join(r.root, "contrib/npm"))
	if err != nil {
		return err
	}
	for _, name := range []string{"examples/prompts.jsonl", "LICENSE"} {
		f, err := entry(name, filepath.Join(r.root, name), 0o644)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	i := slices.IndexFunc(files, func(f file) bool { return f.name == "package.json" })
	about := map[string]any{}
	if err := json.Unmarshal(files[i].data, &about); err != nil {
		return err
	}
	optional := map[string]string{}
	for _, t := range allTargets {
		platform, arch := nodePlatform(t)
		optional["@headrace/"+platform+"-"+arch] = r.version
	}
	about["version"], about["optionalDependencies"] = r.version, optional
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	files[i].data = append(text, '\n')
	return r.npm("headrace", files)
}

func (r *release) npm(name string, files []file) error {
	data, err := tarGz(under("package/", files), r.at)
	if err != nil {
		return err
	}
	return r.write(name+"-"+r.version+".tgz", data, 0o644)
}

// formula returns the Homebrew formula, with the checksums of the archives.
func (r *release) formula() string {
	part := func(os, arch string) string {
		name := fmt.Sprintf("headrace_%s_%s_%s.tar.gz", r.version, os, arch)
		return fmt.Sprintf("      url \"https://github.com/headrace/headrace/releases/download/v%s/%s\"\n      sha256 \"%s\"\n", r.version, name, r.sums[name])
	}
	system := func(word, os string) string {
		return fmt.Sprintf("  on_%s do\n    on_arm do\n%s    end\n    on_intel do\n%s    end\n  end\n", word, part(os, "arm64"), part(os, "amd64"))
	}
	return fmt.Sprintf(`class Headrace < Formula
  desc %q
  homepage "https://github.com/headrace/headrace"
  version %q
  license "MIT"
%s%s
  def install
    bin.install "headrace", "headrace-cluster"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/headrace.bash" => "headrace"
    zsh_completion.install "completions/_headrace"
    fish_completion.install "completions/headrace.fish"
    doc.install "LICENSE", "THIRD_PARTY_LICENSES.txt", "examples", "sbom"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/headrace --version")
  end
end
`, summary, r.version, system("macos", "darwin"), system("linux", "linux"))
}
