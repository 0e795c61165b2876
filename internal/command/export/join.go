package export

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"path/filepath"
	"sort"
	"strings"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider/rawjson"
)

// An input finds the lines of prompt files by their ids. It keeps 16 bytes for each line.
type input struct {
	files   []*window
	seed    maphash.Seed
	lines   places // by hash, once all were read
	names   names  // of all fields but ids
	members []rawjson.Member
	parser  rawjson.Parser
}

// A place is where a line is, and the number by which it is sorted. Of the input the number is a hash of the line's id,
// and at has the number of its file in the upper 16 bits, then its offset. Of results it is the line in the input, and at
// is the offset in the output, or, with all bits turned, in the errors file.
type place struct{ number, at uint64 }

// places are sorted by number. They take 16 bytes each.
type places []place

func (p places) Len() int      { return len(p) }
func (p places) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p places) Less(i, j int) bool {
	return p[i].number < p[j].number || p[i].number == p[j].number && p[i].at < p[j].at
}

// fileBit is the lowest bit of the number of a file. Offsets below it are enough for files of 256 TB.
const fileBit = 48

// mostFiles is the number of files that the bits have room for.
const mostFiles = 1 << (64 - fileBit)

// openInput reads the files from their beginning to their end, as one input.
func openInput(files []string) (*input, error) {
	in := &input{seed: maphash.MakeSeed(), lines: newPlaces(files...)}
	if len(files) > mostFiles {
		return nil, fmt.Errorf("%d files are too many: want at most %d", len(files), mostFiles)
	}
	for line, k := 0, 0; k < len(files); k++ {
		w, err := openWindow(files[k])
		if err == nil {
			in.files = append(in.files, w)
			line, err = in.indexFile(w, k, line)
		}
		if err != nil {
			in.close()
			return nil, fmt.Errorf("%s: %w", files[k], err)
		}
	}
	sort.Sort(in.lines)
	return in, nil
}

func (in *input) close() {
	if in == nil {
		return
	}
	for _, w := range in.files {
		w.close()
	}
}

// errNotJSONL says that a file cannot be joined.
var errNotJSONL = errors.New("its first line is not a JSON object: --join takes JSONL that is not compressed")

// indexFile adds the lines of one file to the index. number is the file's, and line the count of lines before it; the
// result is the new count.
func (in *input) indexFile(w *window, number, line int) (lines int, err error) {
	r := bufio.NewReaderSize(w.file, windowSize)
	var (
		at   int64
		long []byte // a line that is longer than the reader's room
	)
	for begun, end := false, false; !end; {
		text, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, text...)
			continue
		}
		if end = errors.Is(err, io.EOF); err != nil && !end {
			return line, err
		}
		if len(long) > 0 {
			long = append(long, text...)
			text = long
		}
		if len(text) > 0 {
			line++
		}
		if object := object(text); len(object) > 0 {
			good := in.parser.Parse(object) && object[0] == '{'
			if !good && !begun {
				return line, errNotJSONL
			}
			if begun = true; good { // headrace has named a bad line in the run
				if err := in.add(object, uint64(number)<<fileBit|uint64(at), line); err != nil {
					return line, err
				}
			}
		}
		at += int64(len(text))
		long = long[:0]
	}
	return line, nil
}

// object returns a line without white space and byte order mark.
func object(text []byte) []byte { return rawjson.Trim(bytes.TrimPrefix(text, []byte(byteOrderMark))) }

// add puts a parsed line into the index, under its id and at its offset.
func (in *input) add(object []byte, at uint64, line int) error {
	id := idOf(in.parser.Members)
	switch {
	case id == nil:
		id = []byte(prompts.LineID(line))
	case ignoresPlainID(in.parser.Members): // its id is that of its line, unless a template has made the prompt
		in.lines = append(in.lines, place{maphash.Bytes(in.seed, []byte(prompts.LineID(line))), at})
	}
	in.lines = append(in.lines, place{maphash.Bytes(in.seed, id), at})
	return in.names.add(object)
}

// idOf returns the id that a line gives, as the reader of prompts finds it; nil if it gives none.
func idOf(members []rawjson.Member) []byte {
	memberNamed := func(name string) []byte {
		for _, m := range members {
			if string(m.Name) == name && !rawjson.IsNull(m.Value) {
				return m.Value
			}
		}
		return nil
	}
	for _, name := range [...]struct{ id, form string }{{"custom_id", ""}, {"id", ""}, {"key", "request"}, {"recordId", "modelInput"}} {
		id := memberNamed(name.id)
		if id == nil || name.form != "" && memberNamed(name.form) == nil {
			continue
		}
		if rawjson.IsString(id) {
			return rawjson.Unquote(id)
		}
		return id // a number, as it is written
	}
	return nil
}

// ignoresPlainID reports whether a line has the form of a batch and no custom_id. In that form no other member is an
// id.
func ignoresPlainID(members []rawjson.Member) (batch bool) {
	for _, m := range members {
		switch name := string(m.Name); {
		case name == "custom_id" && !rawjson.IsNull(m.Value):
			return false
		case name == "body" || name == "params":
			batch = batch || m.Value[0] == '{'
		}
	}
	return batch
}

// lineWithID returns the line with an id; nil if there is none. A line that gives no id was indexed by its number, so
// its place in the index proves the match.
func (in *input) lineWithID(id []byte) ([]byte, error) {
	hash := maphash.Bytes(in.seed, id)
	i := sort.Search(len(in.lines), func(i int) bool { return in.lines[i].number >= hash })
	for ; i < len(in.lines) && in.lines[i].number == hash; i++ {
		e := in.lines[i]
		text, err := in.files[e.at>>fileBit].line(int64(e.at & (1<<fileBit - 1)))
		if err != nil {
			return nil, err
		}
		text = object(text)
		in.members = rawjson.Members(text, in.members[:0])
		if given := idOf(in.members); given == nil || bytes.Equal(given, id) || ignoresPlainID(in.members) {
			return text, nil
		}
	}
	return nil, nil
}

// isUnjoinable reports whether a file's ending shows that it is compressed or no JSONL: its lines cannot be read by
// offset.
func isUnjoinable(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".gz", ".zst", ".csv", ".tsv", ".txt":
		return true
	}
	return false
}
