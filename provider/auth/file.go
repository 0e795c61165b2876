package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/headrace/headrace/provider"
)

const (
	// rereadEvery is the least time between two reads of a file while no key is refused. A read
	// takes in a page at most, and a fresh key is in use within a second.
	rereadEvery = time.Second

	// MaxKeyFile bounds a file with a key, in bytes. Tokens of some providers have 4 KiB;
	// few servers take headers of more than 16.
	MaxKeyFile = 16 << 10
)

// A File is a key in a file that somebody else keeps fresh: the owner of keys that expire puts
// the next one there. It is read again within a second after it has changed, and at once
// when a key is refused. While there is no key in it, as between two halves of a change,
// the latest one stays in use.
type File struct {
	path  string
	place keyHeader

	mu      sync.Mutex // for what follows
	key     string
	values  []string // of the header, with that key
	readAt  time.Time
	refused string // the key that was refused although it was the one in the file
	secrets []string
}

// NewFile reads the key in a file and sends it as NewKey does. An error is a *provider.Error
// of kind Misconfigured: the file cannot be read, is not a regular file, is longer than
// MaxKeyFile, or has no key in it. NewFile does not check who else may use the file: see Exposed.
func NewFile(path, header, prefix string) (*File, error) {
	p, err := newKeyHeader(header, prefix)
	if err != nil {
		return nil, err
	}
	key, err := readKey(path)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: err}
	}
	f := &File{path: path, place: p, readAt: time.Now()}
	f.setKey(key)
	return f, nil
}

// setKey takes a key up.
func (f *File) setKey(key string) {
	f.key, f.values, f.secrets = key, f.place.values(key), prependSecrets(f.secrets, key)
}

// Apply never fails. Once a second it reads the file.
func (f *File) Apply(_ context.Context, r *http.Request, _ []byte) error {
	f.mu.Lock()
	due := time.Since(f.readAt) >= rereadEvery
	if due {
		f.readAt = time.Now() // the others need not read it
	}
	f.mu.Unlock()
	if due {
		f.reload()
	}
	f.mu.Lock()
	values := f.values
	f.mu.Unlock()
	f.place.put(r, values)
	return nil
}

// reload reads the file and takes its key. It holds no lock while it reads, as a disk may be slow.
func (f *File) reload() {
	key, err := readKey(f.path)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if key != f.key {
		f.setKey(key)
	}
}

// Refused reads the file. It returns true if the file has another key than the refused one, and
// that key was not refused itself.
func (f *File) Refused(r *http.Request) bool {
	used := f.place.in(r)
	if used == "" {
		return false
	}
	f.reload()
	f.mu.Lock()
	defer f.mu.Unlock()
	if used == f.key {
		f.refused = used
	}
	return f.key != f.refused
}

// Secrets returns the latest keys.
func (f *File) Secrets() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.secrets
}

// String hides the key from %v.
func (f *File) String() string { return "a key in " + f.place.header + " from " + f.path }

// GoString hides the key from %#v.
func (f *File) GoString() string { return f.String() }

// readKey reads a file's key. Errors name the file and none of its contents.
func readKey(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("key file: %w", err)
	case !info.Mode().IsRegular(): // a pipe gives a key once, and opening one may block for ever
		return "", fmt.Errorf("key file %s: it is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, MaxKeyFile+1))
	if err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	key, err := keyOf(text)
	if err != nil {
		return "", fmt.Errorf("key file %s: %w", path, err)
	}
	return key, nil
}

// keyOf returns the key in a file's text.
func keyOf(text []byte) (string, error) {
	if len(text) > MaxKeyFile {
		return "", fmt.Errorf("it has more than %d bytes", MaxKeyFile)
	}
	key := string(bytes.TrimSpace(text))
	switch {
	case key == "":
		return "", errors.New("there is no key in it")
	case bytes.ContainsAny([]byte(key), "\r\n"):
		return "", errors.New("it has more than one line")
	case !isHeaderSafe(key):
		return "", errors.New("the key in it has a character that headers cannot have")
	}
	return key, nil
}

// Exposed returns a sentence about the access of others on this machine to a file with a key, and the
// remedy. It returns "" if there is no such access or that cannot be known. On Windows it always
// returns "", as the permissions there say nothing about it.
func Exposed(path string) string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return ""
	}
	mode, may := info.Mode().Perm(), ""
	switch {
	case mode&0o022 != 0:
		may = "change"
	case mode&0o044 != 0:
		may = "read"
	default:
		return ""
	}
	return fmt.Sprintf("others can %s the key file %s (its mode is %04o): protect it with chmod 600", may, path, mode)
}
