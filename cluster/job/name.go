package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrName says that a job cannot have such a name; errors.Is finds it.
var ErrName = errors.New("a job's name has small letters, digits and hyphens, 64 of them at most, and begins with a letter or digit")

// maxName bounds the bytes of a job's name. With everything around it, a name in a store then
// stays well below the limits of stores.
const maxName = 64

// CheckName returns why a job cannot have such a name (ErrName), or nil. Any name that passes is one
// segment of a name in a store, and one token of a subject on a bus.
func CheckName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if name == "" || len(name) > maxName || name[0] == '-' || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("job: %q: %w", name, ErrName)
	}
	return nil
}

// Names of folders in a store. Numbers have leading zeros, so that a list has them in order.
const (
	jobsFolder = "jobs/"
	sumsFolder = "sums/"
)

// PerFolder is the number of chunks whose parts share a folder: the page size of a list in S3, and a
// size that folders of a file system handle quickly.
const PerFolder = 1000

// Folder returns the prefix of the names of all objects of a job.
func Folder(job string) string { return jobsFolder + job + "/" }

func recordsPrefix(job string) string { return Folder(job) + "job-" }

func recordName(job string, version int) string {
	return fmt.Sprintf("%s%06d.json", recordsPrefix(job), version)
}

// recordVersion undoes recordName.
func recordVersion(job, name string) (version int, ok bool) {
	digits, _ := strings.CutPrefix(name, recordsPrefix(job))
	digits, _ = strings.CutSuffix(digits, ".json")
	version, err := strconv.Atoi(digits)
	return version, err == nil && recordName(job, version) == name
}

// IndexFolder returns the folder of the plans and indexes of a job's inputs.
func IndexFolder(job string) string { return Folder(job) + "index/" }

// InputFolder returns the folder of unpacked inputs.
func InputFolder(job string) string { return Folder(job) + "input/" }

// WorkFolder returns the folder of the journals of a chunk's claims.
func WorkFolder(job string, chunk, round int) string {
	return fmt.Sprintf("%swork/%09d%s/", Folder(job), chunk, roundEnding(round))
}

// PartsFolder returns the folder of the parts of all chunks, of all rounds.
func PartsFolder(job string) string { return Folder(job) + "parts/" }

// PartFolder returns the n-th folder of parts: of a thousand chunks.
func PartFolder(job string, n int) string { return fmt.Sprintf("%s%06d/", PartsFolder(job), n) }

// PartName returns the name of a chunk's part of a round.
func PartName(job string, chunk, round int) string {
	return fmt.Sprintf("%s%03d%s", PartFolder(job, chunk/PerFolder), chunk%PerFolder, roundEnding(round))
}

// ParsePart undoes PartName; ok is false for the name of anything but a part.
func ParsePart(job, name string) (chunk, round int, ok bool) {
	rest, _ := strings.CutPrefix(name, PartsFolder(job))
	folder, rest, _ := strings.Cut(rest, "/")
	in, ending, _ := strings.Cut(rest, ".r")
	thousand, err := strconv.Atoi(folder)
	n, err2 := strconv.Atoi(in)
	if ending != "" {
		round, _ = strconv.Atoi(ending)
	}
	chunk = thousand*PerFolder + n
	return chunk, round, err == nil && err2 == nil && chunk >= 0 && PartName(job, chunk, round) == name
}

// SumsFolder returns the folder of the sums of all folders of parts.
func SumsFolder(job string) string { return Folder(job) + sumsFolder }

// SumsName returns the name of the sums of the n-th folder of parts. They exist once that folder is whole.
func SumsName(job string, n, round int) string {
	return fmt.Sprintf("%s%06d%s", SumsFolder(job), n, roundEnding(round))
}

// ParseSums undoes SumsName; ok is false for any other name.
func ParseSums(job, name string) (n, round int, ok bool) {
	rest, _ := strings.CutPrefix(name, SumsFolder(job))
	digits, ending, _ := strings.Cut(rest, ".r")
	n, err := strconv.Atoi(digits)
	if ending != "" {
		round, _ = strconv.Atoi(ending)
	}
	return n, round, err == nil && n >= 0 && SumsName(job, n, round) == name
}

// DoneName returns the name of the object that marks a round as over.
func DoneName(job string, round int) string { return Folder(job) + "DONE" + roundEnding(round) }

func roundEnding(round int) string {
	if round == 0 {
		return ""
	}
	return ".r" + strconv.Itoa(round)
}
