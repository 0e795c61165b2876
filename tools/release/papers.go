package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// ownModule is the beginning of the names of our own modules.
const ownModule = "github.com/headrace/headrace"

// ownPapers returns what belongs with binaries: our licence, those of all modules in them, and a list
// of the modules for each.
func (r *release) ownPapers(paths ...string) ([]file, error) {
	licence, err := entry("LICENSE", filepath.Join(r.root, "LICENSE"), 0o644)
	if err != nil {
		return nil, err
	}
	files := []file{licence}
	modules := map[string]*debug.Module{}
	for _, path := range paths {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, err
		}
		deps := foreignModules(info)
		for _, m := range deps {
			modules[m.Path+"@"+m.Version] = m
		}
		name := strings.TrimSuffix(filepath.Base(path), ".exe")
		list, err := r.bom(name, info, deps)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"sbom/" + name + ".cdx.json", list, 0o644})
	}
	text, err := r.licences(modules)
	return append(files, file{"THIRD_PARTY_LICENSES.txt", text, 0o644}), err
}

// foreignModules returns the modules that are linked into a binary and are not ours.
func foreignModules(info *debug.BuildInfo) []*debug.Module {
	var list []*debug.Module
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, ownModule) {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, m)
	}
	return list
}

// licenceName matches the names of files that say under which terms something may be passed on.
var licenceName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|copyright|unlicense)([.-].*)?$`)

// licences returns the texts of the licences of modules, and of Go.
func (r *release) licences(modules map[string]*debug.Module) ([]byte, error) {
	var names []string
	for name := range modules {
		names = append(names, name)
	}
	slices.Sort(names)
	listed, err := r.output("go", append([]string{"mod", "download", "-json"}, names...)...)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(listed)); ; {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		folders[m.Path+"@"+m.Version] = m.Dir
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "The command contains Go's standard library and %d modules. These are their licences.\n", len(names))
	goroot, err := r.output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(strings.TrimSpace(goroot), "LICENSE"))
	if err != nil {
		return nil, err
	}
	section(&text, "Go's standard library", licence)
	for _, name := range names {
		if err := moduleLicences(&text, name, folders[name]); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// moduleLicences appends every licence in a module's folder, also those of code that it copied.
func moduleLicences(text *bytes.Buffer, name, folder string) error {
	seen := map[[sha256.Size]byte]bool{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || !licenceName.MatchString(d.Name()) || filepath.Ext(path) == ".go" {
			return nil
		}
		licence, err := os.ReadFile(path)
		if err != nil || seen[sha256.Sum256(licence)] {
			return err
		}
		seen[sha256.Sum256(licence)] = true
		within, err := filepath.Rel(folder, path)
		section(text, name+": "+filepath.ToSlash(within), licence)
		return err
	})
	if err == nil && len(seen) == 0 {
		err = fmt.Errorf("%s has no licence: it must not be part of a release", name)
	}
	return err
}

func section(text *bytes.Buffer, title string, licence []byte) {
	fmt.Fprintf(text, "\n%s\n%s\n\n%s\n", title, strings.Repeat("=", len(title)), bytes.TrimSpace(licence))
}

// bom returns the list of the modules in a binary, in the form of CycloneDX.
func (r *release) bom(name string, info *debug.BuildInfo, deps []*debug.Module) ([]byte, error) {
	purl := func(path, version string) string { return "pkg:golang/" + path + "@" + version }
	own := purl(info.Main.Path, "v"+r.version)
	parts := []cyclonedx.Component{{
		BOMRef: purl("std", info.GoVersion), PackageURL: purl("std", info.GoVersion), Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
	}}
	refs := []string{parts[0].BOMRef}
	for _, m := range deps {
		ref := purl(m.Path, m.Version)
		refs = append(refs, ref)
		parts = append(parts, cyclonedx.Component{BOMRef: ref, PackageURL: ref, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version})
	}
	list := cyclonedx.NewBOM()
	list.Metadata = &cyclonedx.Metadata{
		Timestamp: r.at.Format(time.RFC3339),
		Component: &cyclonedx.Component{BOMRef: own, PackageURL: own, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: r.version},
	}
	list.Components = &parts
	list.Dependencies = &[]cyclonedx.Dependency{{Ref: own, Dependencies: &refs}}
	var buf bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&buf, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(list)
	return buf.Bytes(), err
}

// certificates returns the roots that Mozilla trusts, for an image that has no others.
func certificates() []byte {
	var buf bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot say a constraint
			_ = pem.Encode(&buf, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes everything
		}
	}
	return buf.Bytes()
}

// handPages returns man pages of both commands, and completions for the shells.
func (r *release) handPages(b binaries) ([]file, error) {
	var files []file
	for name, path := range map[string]string{"headrace": b.light, "headrace-cluster": b.cluster} {
		pages, err := r.manPages(name, path, nil, "run prompt files against rate-limited model APIs")
		if err != nil {
			return nil, err
		}
		files = append(files, pages...)
	}
	for shell, name := range map[string]string{"bash": "headrace.bash", "zsh": "_headrace", "fish": "headrace.fish", "powershell": "headrace.ps1"} {
		text, err := r.output(b.light, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + name, []byte(text), 0o644})
	}
	return files, nil
}

// subcommand matches a line of help that names a command and says what it does.
var subcommand = regexp.MustCompile(`^  ([a-z][a-z-]*) +(\S.*)$`)

// manPages returns the page of a command, and those of the commands under it. A page is what --help says.
func (r *release) manPages(name, path string, words []string, short string) ([]file, error) {
	help, err := r.output(path, append(slices.Clone(words), "--help")...)
	if err != nil {
		return nil, err
	}
	title := strings.Join(append([]string{name}, words...), "-")
	files := []file{{"man/" + title + ".1", manPage(title, short, help, r.version, r.at), 0o644}}
	_, rest, _ := strings.Cut(help, "\nUsage:\n")
	rest, _, _ = strings.Cut(rest, "\nFlags:\n")
	commands := false
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") && line != "" {
			commands = line != "Examples:" && line != "Aliases:"
		}
		m := subcommand.FindStringSubmatch(line)
		if m == nil || !commands || m[1] == name || m[1] == "headrace" || m[1] == "help" || m[1] == "completion" {
			continue
		}
		pages, err := r.manPages(name, path, append(slices.Clone(words), m[1]), m[2])
		if err != nil {
			return nil, err
		}
		files = append(files, pages...)
	}
	return files, nil
}

// manPage returns a help text as a man page, line by line as it is.
func manPage(title, short, help, version string, at time.Time) []byte {
	escape := func(text string) string { return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text) }
	var buf bytes.Buffer
	fmt.Fprintf(&buf, ".TH %s 1 %s \"headrace %s\" \"User Commands\"\n", strings.ToUpper(title), at.Format(time.DateOnly), version)
	fmt.Fprintf(&buf, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", escape(title), escape(short))
	for line := range strings.Lines(help) {
		buf.WriteString(`\&` + escape(line)) // \& keeps a leading dot from being a request
	}
	buf.WriteString(".fi\n")
	return buf.Bytes()
}
