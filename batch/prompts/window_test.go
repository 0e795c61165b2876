package prompts

import (
	"errors"
	"io"
	"strings"
	"testing"
)

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
