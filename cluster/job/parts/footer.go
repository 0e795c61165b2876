package parts

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/headrace/headrace/cluster/job"
)

// ErrDamaged says that a part has changed since it was written.
var ErrDamaged = errors.New("it is not what was written")

// footer is the last line of a part.
type footer struct {
	Format int    `json:"format"` // that of the job's record
	Job    string `json:"job"`
	Chunk  int    `json:"chunk"`
	Round  int    `json:"round"`
	Bytes  int64  `json:"bytes"` // of the lines before it
	Sums
}

// A footer ends in a CRC-32C of all earlier bytes of the part.
const (
	footerBegins = `{"headrace_part":`
	sumBegins    = `,"crc":"`
	sumEnds      = "\"}\n"
	sumDigits    = 8
	sumLength    = len(sumBegins) + sumDigits + len(sumEnds)
	// footerRoom exceeds the bytes of any footer: its numbers, and the job's name.
	footerRoom = 2048
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// open returns the footer up to its sum.
func (f *footer) open() []byte {
	text, _ := json.Marshal(f) // it only fails on a NaN or an infinity, and sums have neither
	return append([]byte(footerBegins), text...)
}

// closeFooter completes a footer by the sum of all bytes before it.
func closeFooter(open []byte, sum uint32) []byte {
	var digits [4]byte
	digits[0], digits[1], digits[2], digits[3] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
	text := append(open[:len(open):len(open)], sumBegins...)
	return append(hex.AppendEncode(text, digits[:]), sumEnds...)
}

// parseFooter reads a footer, and returns its sum.
func parseFooter(line []byte) (f footer, sum uint32, err error) {
	if len(line) < len(footerBegins)+sumLength || !bytes.HasPrefix(line, []byte(footerBegins)) {
		return f, 0, ErrDamaged
	}
	open := line[:len(line)-sumLength]
	digits := line[len(open)+len(sumBegins) : len(line)-len(sumEnds)]
	if _, err := fmt.Sscanf(string(digits), "%08x", &sum); err != nil || !bytes.Equal(closeFooter(open, sum), line) {
		return f, 0, ErrDamaged
	}
	if err := json.Unmarshal(open[len(footerBegins):], &f); err != nil {
		return f, 0, ErrDamaged
	}
	if f.Format > job.RecordFormat {
		return f, 0, job.ErrNewer
	}
	return f, sum, nil
}

// is reports whether the footer belongs to this part.
func (f *footer) is(name string, chunk, round int) bool {
	return f.Job == name && f.Chunk == chunk && f.Round == round
}
