package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrName says that a job cannot be called so; errors.Is finds it.
var ErrName = errors.New("a job's name has small letters, digits and hyphens, 64 of them at most, and begins with a letter or digit")

// maxName is the most bytes of a job's name: with it, and all that stands around it, a name in a
// store stays well below what stores take.
const maxName = 64

// CheckName says why a job cannot be called so (ErrName), or nil. Whatever name passes is one
// segment of a name in a store, and one token of a subject on a bus.
func CheckName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if name == "" || len(name) > maxName || name[0] == '-' || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("job: %q: %w", name, ErrName)
	}
	return nil
}

// Where things stand in a store. Numbers have leading zeros, so that a list has them in order.
const (
	jobsFolder = "jobs/"
	sumsFolder = "sums/"
)

// PerFolder is how many chunks have their parts in one folder: what a list of S3 has on one
// page, and what a folder of a file system is quick with.
const PerFolder = 1000

// Folder is what the names of all objects of a job begin with.
func Folder(job string) string { return jobsFolder + job + "/" }

func recordsPrefix(job string) string { return Folder(job) + "job-" }

func recordName(job string, version int) string {
	return fmt.Sprintf("%s%06d.json", recordsPrefix(job), version)
}

// recordVersion is recordName undone.
func recordVersion(job, name string) (version int, ok bool) {
	digits, _ := strings.CutPrefix(name, recordsPrefix(job))
	digits, _ = strings.CutSuffix(digits, ".json")
	version, err := strconv.Atoi(digits)
	return version, err == nil && recordName(job, version) == name
}

// IndexFolder is where what is known of a job's inputs stands.
func IndexFolder(job string) string { return Folder(job) + "index/" }

// InputFolder is where inputs stand that had to be unpacked.
func InputFolder(job string) string { return Folder(job) + "input/" }

// WorkFolder is where claims of a chunk keep their journals.
func WorkFolder(job string, chunk, round int) string {
	return fmt.Sprintf("%swork/%09d%s/", Folder(job), chunk, roundEnding(round))
}

// PartsFolder is where the parts of all chunks stand, of all rounds.
func PartsFolder(job string) string { return Folder(job) + "parts/" }

// PartFolder is the n-th folder of parts: of a thousand chunks.
func PartFolder(job string, n int) string { return fmt.Sprintf("%s%06d/", PartsFolder(job), n) }

// PartName is what a chunk's part of a round is called.
func PartName(job string, chunk, round int) string {
	return fmt.Sprintf("%s%03d%s", PartFolder(job, chunk/PerFolder), chunk%PerFolder, roundEnding(round))
}

// ParsePart is PartName undone; ok is false for what is no part.
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

// SumsFolder is where the sums of folders of parts stand.
func SumsFolder(job string) string { return Folder(job) + sumsFolder }

// SumsName is where the sums of the n-th folder of parts stand, once it is whole.
func SumsName(job string, n, round int) string {
	return fmt.Sprintf("%s%06d%s", SumsFolder(job), n, roundEnding(round))
}

// ParseSums is SumsName undone; ok is false for what is none.
func ParseSums(job, name string) (n, round int, ok bool) {
	rest, _ := strings.CutPrefix(name, SumsFolder(job))
	digits, ending, _ := strings.Cut(rest, ".r")
	n, err := strconv.Atoi(digits)
	if ending != "" {
		round, _ = strconv.Atoi(ending)
	}
	return n, round, err == nil && n >= 0 && SumsName(job, n, round) == name
}

// DoneName is what says that a round is over.
func DoneName(job string, round int) string { return Folder(job) + "DONE" + roundEnding(round) }

func roundEnding(round int) string {
	if round == 0 {
		return ""
	}
	return ".r" + strconv.Itoa(round)
}
