package prompts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/headrace/headrace/batch/internal/lines"
)

// ErrPacked says that a compressed input is cut short or corrupt.
var ErrPacked = errors.New("cut short or corrupt: download it again, or compress it again")

// windowBytes bounds the memory that a zstd stream may ask for: as much as the strongest
// usual setting (--ultra -22) uses. Only --long=28 and above asks for more.
const windowBytes = 128 << 20

var packings = []struct {
	name, magic string
	open        func(io.Reader) (io.Reader, error)
}{
	{"gzip", "\x1f\x8b", openMembers},
	// One goroutine, ours: there is nothing to close.
	{"zstd", "\x28\xb5\x2f\xfd", func(in io.Reader) (io.Reader, error) {
		return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowBytes))
	}},
}

// members reads gzip files that stand one after another. It finds out by itself whether
// another one follows: the gzip reader takes a cut header for the end of them all.
type members struct {
	in     *bufio.Reader
	member *gzip.Reader
}

// openMembers opens the first member of a gzip file.
func openMembers(in io.Reader) (io.Reader, error) {
	m := &members{in: bufio.NewReaderSize(in, lines.ReadBuffer), member: new(gzip.Reader)}
	return m, m.next()
}

// next continues with the member that begins here.
func (m *members) next() error {
	err := m.member.Reset(m.in)
	if lines.AtEnd(err) {
		err = io.ErrUnexpectedEOF // of its header
	}
	m.member.Multistream(false)
	return err
}

// Read unpacks the members one after the other, as one stream. The stream ends only where a
// member ends and nothing follows: a cut member is an error.
func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.member.Read(p)
		if n > 0 && lines.AtEnd(err) {
			return n, nil
		}
		if n > 0 || !lines.AtEnd(err) {
			return n, err
		}
		if _, err := m.in.Peek(1); err != nil {
			return 0, err
		}
		if err := m.next(); err != nil {
			return 0, err
		}
	}
}

// Unpack returns a reader of the content of in: unpacked if in is packed by gzip or zstd,
// else as it is.
func Unpack(in io.Reader) io.Reader { return &unpacker{in: in} }

// HeadBytes is the number of bytes at the beginning of an input that show whether it is
// packed.
const HeadBytes = 4

// Packed names the packing of an input that begins with head, "" if it is not packed.
func Packed(head []byte) string {
	for _, p := range packings {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return p.name
		}
	}
	return ""
}

// unpacker reads the content of gzip and zstd, recognised by their first bytes, and
// anything else as it is.
type unpacker struct {
	in      io.Reader
	out     io.Reader // nil before the first read
	packing string    // what in is packed with, "" if it is not
}

// Read returns the unpacked content. The first call finds out how the input is packed.
func (u *unpacker) Read(p []byte) (int, error) {
	if u.out == nil {
		if err := u.open(); err != nil {
			return 0, err
		}
	}
	n, err := u.out.Read(p)
	return n, u.wrapFault(err)
}

// open finds out how the input is packed, by its first bytes. They may come in several reads.
func (u *unpacker) open() (err error) {
	head := make([]byte, HeadBytes)
	n, err := io.ReadFull(u.in, head)
	if err != nil && !lines.AtEnd(err) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), u.in)
	for _, p := range packings {
		if bytes.HasPrefix(head[:n], []byte(p.magic)) {
			u.packing = p.name
			u.out, err = p.open(all)
			return u.wrapFault(err)
		}
	}
	u.out = all
	return nil
}

// wrapFault wraps an error of a packed input in ErrPacked. The end of an input is not a fault.
func (u *unpacker) wrapFault(err error) error {
	if err == nil || lines.AtEnd(err) || u.packing == "" {
		return err
	}
	return fmt.Errorf("the %s data (%w) is %w", u.packing, err, ErrPacked)
}
