package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxName bounds the bytes of a name. S3 takes 1,024 with the prefix of the store.
	MaxName = 900
	// MaxSegment bounds the bytes between two slashes. File systems take 255, and a journal adds
	// an ending.
	MaxSegment = 240
)

// No segment of a name begins with these, as a folder uses them for files that a list does not show.
const (
	// tempFolder holds a folder's unfinished files.
	tempFolder = ".headrace-tmp"
	// silly begins the names that NFS gives to files removed while open.
	silly = ".nfs"
)

// CheckName returns an error (ErrName) for a name that no object can have. Names follow the same
// rules in every store. They are slash-separated segments of UTF-8 without control characters. No
// segment is empty, "." or "..", so no name begins or ends with a slash. Two words are reserved: no
// segment begins with ".headrace-tmp" or ".nfs". A name must not also be the beginning of another up
// to a slash. Where that would make one name a file and a folder, writing the second fails.
func CheckName(name string) error {
	why := flaw(name)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrName, why)
}

func flaw(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > MaxName:
		return fmt.Sprintf("it has %d bytes, %d are the most", len(name), MaxName)
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "it has a control character in it"
	}
	for segment := range strings.SplitSeq(name, "/") {
		if why := flawOf(segment); why != "" {
			return why
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "this system takes it for something else"
	}
	return ""
}

func flawOf(segment string) string {
	switch {
	case segment == "":
		return "it begins or ends with a slash, or has two in a row"
	case segment == ".", segment == "..":
		return segment + " is no segment of a name"
	case len(segment) > MaxSegment:
		return fmt.Sprintf("a segment has %d bytes, %d are the most", len(segment), MaxSegment)
	case hidden(segment):
		return segment + " is reserved"
	}
	return ""
}

// hidden reports whether lists leave out names with this segment.
func hidden(segment string) bool {
	return strings.HasPrefix(segment, tempFolder) || strings.HasPrefix(segment, silly)
}

// checkPrefix says why no name can begin with prefix.
func checkPrefix(prefix string) error {
	if CheckName(prefix) == nil {
		return nil
	}
	return CheckName(prefix + "x") // "", "a/" and ".." are no names, but begin some
}
