package journal

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
)

// A line ends in its sum. CRC-32C finds every flipped bit, every run of damage up to 32
// bits long, and all but one in four billion of the rest. Processors have an instruction
// for it, so it costs less than reading the line.
const (
	sumBegins = `,"sum":"`
	sumEnds   = "\"}}\n"
	sumDigits = 8
	sumLength = len(sumBegins) + sumDigits + len(sumEnds)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSum appends the sum of the bytes in line, the line so far.
func appendSum(dst, line []byte) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(line, castagnoli))
	dst = hex.AppendEncode(append(dst, sumBegins...), sum[:])
	return append(dst, '"')
}

// sumHolds reports whether a line, line feed included, is as it was written.
func sumHolds(line []byte) bool {
	if len(line) < sumLength {
		return false
	}
	var room [sumLength]byte
	body := line[:len(line)-sumLength]
	want := append(appendSum(room[:0], body), sumEnds[1:]...)
	return string(want) == string(line[len(body):])
}
