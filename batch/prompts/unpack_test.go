package prompts

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/headrace/headrace/internal/must"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// gzipped is one member with all that a header may hold.
func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Name, w.Comment, w.Extra = "prompts.jsonl", "of today", []byte("extra")
	_, err := io.WriteString(w, text)
	must.Do(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

func zstandard(t *testing.T, text string) []byte {
	t.Helper()
	w := must.Get(zstd.NewWriter(nil))(t)
	return w.EncodeAll([]byte(text), nil)
}

// A packed input that is cut at whatever byte, that of its header included, is said to
// be cut. It is never taken for one that ends there: not even where a whole one stands
// before it, as when files are put behind one another.
func TestPackedInputCutAnywhere(t *testing.T) {
	const text = `{"prompt":"one","model":"m"}` + "\n"
	packed := map[string][]byte{"gzip": gzipped(t, text), "zstd": zstandard(t, text)}
	magic := map[string]int{"gzip": 2, "zstd": 4}
	for name, one := range packed {
		two := slices.Concat(one, one)
		for n := magic[name]; n <= len(two); n++ {
			whole := n == len(one) || n == len(two)
			for _, in := range []io.Reader{bytes.NewReader(two[:n]), iotest.OneByteReader(bytes.NewReader(two[:n]))} {
				items, err := readThrough(in)
				if whole && (err != nil || items != n/len(one)) {
					t.Errorf("%s, whole after %d bytes: %d items, %v", name, n, items, err)
				}
				if !whole && !errors.Is(err, ErrPacked) {
					t.Errorf("%s, cut after %d of %d bytes: %d items, %v", name, n, len(two), items, err)
				}
			}
		}
	}
}

// readThrough gives how many items there are, and why there are no more but for the end.
func readThrough(in io.Reader) (items int, err error) {
	r := NewReader(in, Config{Name: "in", Checked: true})
	for {
		_, err := r.Next()
		if err == io.EOF { //nolint:errorlint // a wrapped one is what is looked for
			return items, nil
		}
		if err != nil {
			return items, err
		}
		items++
	}
}

// What cannot be read on is no fault of the packing's.
func TestPackedInputThatBreaks(t *testing.T) {
	broken := errors.New("the disk is gone")
	one := gzipped(t, `{"prompt":"one","model":"m"}`+"\n")
	for _, n := range []int{1, 5, len(one) - 4, len(one)} {
		_, err := readThrough(io.MultiReader(bytes.NewReader(one[:n]), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("broken after %d bytes: %v", n, err)
		}
	}
}

// What follows a member and is no further one is not passed over.
func TestNotesBehindGzip(t *testing.T) {
	in := append(gzipped(t, `{"prompt":"one","model":"m"}`+"\n"), "notes of mine"...)
	if items, err := readThrough(bytes.NewReader(in)); !errors.Is(err, ErrPacked) {
		t.Errorf("%d items, %v", items, err)
	}
}

// An input that is packed twice is unpacked once, by every caller.
func TestPackedTwice(t *testing.T) {
	inner := gzipped(t, `{"prompt":"one","model":"m"}`+"\n")
	if Packed(inner) != "gzip" || Packed(zstandard(t, "a")[:HeadBytes]) != "zstd" || Packed([]byte("{\"")) != "" || Packed(nil) != "" {
		t.Error("what packs an input is not told by its head")
	}
	once, err := io.ReadAll(Unpack(bytes.NewReader(gzipped(t, string(inner)))))
	if err != nil || !bytes.Equal(once, inner) {
		t.Fatalf("%q, %v", once, err)
	}
	r := NewReader(bytes.NewReader(once), Config{Plain: true})
	if _, err := r.Next(); !isLineError(err) {
		t.Errorf("what is plain is unpacked: %v", err)
	}
	if items, err := readThrough(bytes.NewReader(once)); items != 1 || err != nil {
		t.Errorf("%d items, %v", items, err)
	}
}

// A zstd stream says how much of it must be remembered to read it, before anything else.
// What the strongest usual setting asks for is given; a stream that asks for more is
// refused, however little it holds.
func TestZstdWindowIsBounded(t *testing.T) {
	const text = `{"prompt":"a"}` + "\n"
	for log, fits := range map[int]bool{27: true, 28: false, 41: false} {
		// A frame without checksum and length: its window, and one last block that is not
		// packed, whose header is its length, its type and whether it is the last.
		frame := "\x28\xb5\x2f\xfd\x00" + string([]byte{byte(log-10) << 3, byte(len(text)<<3 | 1), 0, 0}) + text
		got, err := io.ReadAll(&unpacker{in: strings.NewReader(frame)})
		switch {
		case fits && (err != nil || string(got) != text):
			t.Errorf("a window of 2^%d: %q, %v", log, got, err)
		case !fits && (!errors.Is(err, ErrPacked) || len(got) > 0):
			t.Errorf("a window of 2^%d: %q, %v", log, got, err)
		}
	}
}
