package jsonl

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// A table holds what was put in, and nothing else: as a map would.
func TestTableIsASet(t *testing.T) {
	for _, width := range []int{idWidth, keyWidth} {
		r, slow, fast := rand.New(rand.NewPCG(1, 2)), map[keySum]bool{}, table{width: width}
		for range 200_000 {
			sum := hashed(r.IntN(100_000))
			if fast.has(sum) != slow[sum] || fast.add(sum) == slow[sum] {
				t.Fatalf("%v: the map says %v", sum, slow[sum])
			}
			slow[sum] = true
		}
		if fast.len != len(slow) {
			t.Errorf("%d entries, the map has %d", fast.len, len(slow))
		}
	}
}

// Hashes that differ in any of the bits that are kept are told apart.
func TestTableKeepsItsBits(t *testing.T) {
	for width, bits := range map[int]int{idWidth: 62, keyWidth: 78} {
		set := table{width: width}
		set.add(keySum{})
		for i := range bits {
			var sum keySum
			sum[i/8] = 0x80 >> (i % 8)
			if set.has(sum) {
				t.Errorf("width %d: bit %d is lost", width, i)
			}
		}
	}
}

func hashed(n int) keySum {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return keySum(sum[:keySize])
}

// What a table takes of memory is within the promised bytes for each item. With
// TABLE_ITEMS=10000000 in the environment it is measured at that size.
func TestBytesOfATable(t *testing.T) {
	items := 300_000
	if n, err := strconv.Atoi(os.Getenv("TABLE_ITEMS")); err == nil {
		items = n
	}
	for width, promised := range map[int]float64{idWidth: BytesPerItem, keyWidth: ResumeBytesPerItem} {
		before := heap()
		set := table{width: width}
		for i := range items {
			set.add(hashed(i))
		}
		used := float64(heap()-before-24<<shelfBits) / float64(items) // but for the fixed list of shelves
		t.Logf("width %d: %.2f bytes for each of %d items", width, used, items)
		if set.len != items || used > promised {
			t.Errorf("width %d: %.2f bytes an item, promised %v", width, used, promised)
		}
		runtime.KeepAlive(set)
	}
}

func BenchmarkTableAdd(b *testing.B) {
	set, n := table{width: keyWidth}, uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		var sum keySum
		binary.BigEndian.PutUint64(sum[:8], n*0x9E3779B97F4A7C15)
		set.add(sum)
	}
}
