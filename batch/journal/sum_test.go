package journal

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// unsummed is a line as AppendLine wrote it, without its sum.
func unsummed(line string) string {
	at := strings.LastIndex(line, sumBegins)
	return line[:at] + line[at+len(sumBegins)+sumDigits+1:]
}

// The sum is what anyone can compute: CRC-32C of the bytes before it.
func TestSumIsCRC32C(t *testing.T) {
	line := journalLine("a", "")
	at := strings.LastIndex(line, `,"sum":"`)
	want := fmt.Sprintf("%08x", crc32.Checksum([]byte(line[:at]), crc32.MakeTable(crc32.Castagnoli)))
	if line[at:] != `,"sum":"`+want+"\"}}\n" {
		t.Errorf("the line ends in %q, want %s", line[at:], want)
	}
}

// A line that is appended to others has a sum of its own bytes alone.
func TestSumIsOfOneLine(t *testing.T) {
	l := savedLine(1)
	both := AppendLine(AppendLine(nil, &l), &l)
	if !sumHolds(both[len(both)/2:]) || sumHolds(both) || sumHolds(nil) {
		t.Error("a sum holds for what it should not, or the reverse")
	}
}
