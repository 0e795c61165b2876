package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The files of a schema, and how they go to another machine:
//
//	folder ─ Load ─▶ Schema
//	   └──── Pack ─▶ text ─ Unpack ─▶ the same Schema, and no file of the machine that unpacks it

// maxFile bounds a file of a schema, in bytes: a hundred times the longest that a provider takes for
// structured outputs. A device that never ends, given by mistake, ends there.
const maxFile = 16 << 20

// root is the address under which a schema is compiled. Its folder is that of the file: no reference
// can lead out of it.
const root = "file:///"

// files are the only place from which a schema is read.
type files struct {
	read      func(name string) ([]byte, error)
	readFiles map[string]json.RawMessage // what was read, by the names; nil: nobody wants to know
}

// inFolderOf returns the files in the folder of a file and below, and its name there.
func inFolderOf(file string) (of *files, name string) {
	dir, name := filepath.Split(file)
	dir = filepath.Clean(dir)
	return &files{read: func(name string) ([]byte, error) { return readInFolder(dir, name) }}, name
}

// readInFolder reads a file in a folder. A name or a link that leads out of the folder is an error.
func readInFolder(dir, name string) ([]byte, error) {
	file, err := os.OpenInRoot(dir, filepath.FromSlash(name))
	if err != nil {
		if in := new(fs.PathError); errors.As(err, &in) {
			err = in.Err // its name is known
		}
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	return text, err
}

// Load is called for each reference to another file, by its absolute address.
func (f *files) Load(address string) (any, error) {
	name, local := strings.CutPrefix(address, root)
	if !local {
		return nil, errors.New("nothing is fetched: save it next to the schema, and refer to that file")
	}
	name, err := url.PathUnescape(name)
	if err != nil {
		return nil, err
	}
	return f.readDoc(name)
}

// readDoc returns the JSON value in a file, and remembers the file's text for Pack.
func (f *files) readDoc(name string) (any, error) {
	name = path.Clean(name)
	text, err := f.read(name)
	if err != nil {
		return nil, err
	}
	doc, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if f.readFiles != nil {
		f.readFiles[name] = text
	}
	return doc, nil
}

// packed is a schema with all files that it refers to.
type packed struct {
	File  string                     `json:"file"` // the schema's own
	Files map[string]json.RawMessage `json:"files"`
}

// Pack returns the schema in a file, with all files that it refers to, as one text for [Unpack]. It refuses what
// [Load] refuses.
func Pack(file string) (string, error) {
	of, name := inFolderOf(file)
	of.readFiles = map[string]json.RawMessage{}
	if _, err := load(of, name); err != nil {
		return "", err
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text) // it writes the texts of files in their short form
	e.SetEscapeHTML(false)
	err := e.Encode(packed{path.Clean(name), of.readFiles})
	return strings.TrimSuffix(text.String(), "\n"), err
}

// Unpack returns the schema that [Pack] has packed. It reads no file.
func Unpack(text string) (*Schema, error) {
	var p packed
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("it is not a packed schema: %w", err)
	}
	return load(&files{read: func(name string) ([]byte, error) {
		text, has := p.Files[name]
		if !has {
			return nil, fs.ErrNotExist
		}
		return text, nil
	}}, p.File)
}
