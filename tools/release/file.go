package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// A file is one of those that a package contains.
type file struct {
	name string // with slashes, and with no folder above it
	data []byte
	mode os.FileMode // 0o644, or 0o755 of a command
}

// entry reads a file under another name.
func entry(name, from string, mode os.FileMode) (file, error) {
	data, err := os.ReadFile(from)
	return file{name, data, mode}, err
}

// under returns the files in a folder.
func under(folder string, files []file) []file {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].name = folder + moved[i].name
	}
	return moved
}

// sorted returns the files in the order of their names: packages must not depend on the order in
// which they were found.
func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

// tarGz packs files, each with the same time and owned by root.
func tarGz(files []file, at time.Time) ([]byte, error) { return tarGzWithFolders(files, at, false) }

// tarGzWithFolders also has the folders themselves, where dpkg wants to know whose they are.
func tarGzWithFolders(files []file, at time.Time, folders bool) ([]byte, error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	known := map[string]bool{".": true}
	for _, f := range sorted(files) {
		for _, folder := range missing(path.Dir(f.name), known) {
			if !folders {
				continue
			}
			h := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}
			if err := t.WriteHeader(h); err != nil {
				return nil, err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err = z.Close()
	return buf.Bytes(), err
}

// missing returns a folder and those above it that are not known yet, from the top, and makes them known.
func missing(folder string, known map[string]bool) []string {
	if known[folder] {
		return nil
	}
	known[folder] = true
	return append(missing(path.Dir(folder), known), folder)
}

// zipOf packs files in the order given, each with the same time.
func zipOf(files []file, at time.Time) ([]byte, error) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return buf.Bytes(), err
}

// arOf packs the members of a Debian package: the archive of deb(5), with short names only.
func arOf(files []file, at time.Time) []byte {
	var buf bytes.Buffer
	buf.WriteString("!<arch>\n")
	for _, f := range files {
		fmt.Fprintf(&buf, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, at.Unix(), 0, 0, 0o100644, len(f.data))
		buf.Write(f.data)
		buf.WriteString(strings.Repeat("\n", len(f.data)%2))
	}
	return buf.Bytes()
}
