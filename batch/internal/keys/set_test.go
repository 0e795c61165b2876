package keys

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// The widths that are used: of ids (62 bits), of what has ended (78).
const narrow, wide = 6, 8

// A set holds what was put in, and nothing else: as a map would.
func TestSetIsASet(t *testing.T) {
	for _, width := range []int{narrow, wide} {
		r, slow, fast := rand.New(rand.NewPCG(1, 2)), map[Sum]bool{}, Set{Width: width}
		for range 200_000 {
			sum := hashed(r.IntN(100_000))
			if fast.Has(sum) != slow[sum] || fast.Add(sum) == slow[sum] {
				t.Fatalf("%v: the map says %v", sum, slow[sum])
			}
			slow[sum] = true
		}
		if fast.Len() != len(slow) {
			t.Errorf("%d entries, the map has %d", fast.Len(), len(slow))
		}
	}
}

// A set distinguishes hashes that differ in any of the bits that it keeps.
func TestSetKeepsItsBits(t *testing.T) {
	for width, bits := range map[int]int{narrow: 62, wide: 78} {
		set := Set{Width: width}
		set.Add(Sum{})
		for i := range bits {
			var sum Sum
			sum[i/8] = 0x80 >> (i % 8)
			if set.Has(sum) {
				t.Errorf("width %d: bit %d is lost", width, i)
			}
		}
	}
}

func hashed(n int) Sum {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return Sum(sum[:Size])
}

// What a set takes of memory is within the bytes for each item that packages prompts and
// journal promise. With
// SET_ITEMS=10000000 in the environment it is measured at that size.
func TestBytesOfASet(t *testing.T) {
	items := 300_000
	if n, err := strconv.Atoi(os.Getenv("SET_ITEMS")); err == nil {
		items = n
	}
	for width, promised := range map[int]float64{narrow: 7.5, wide: 9.5} {
		before := heap()
		set := Set{Width: width}
		for i := range items {
			set.Add(hashed(i))
		}
		used := float64(heap()-before-24<<shelfBits) / float64(items) // but for the fixed list of shelves
		t.Logf("width %d: %.2f bytes for each of %d items", width, used, items)
		if set.Len() != items || used > promised {
			t.Errorf("width %d: %.2f bytes an item, promised %v", width, used, promised)
		}
		runtime.KeepAlive(set)
	}
}

func BenchmarkSetAdd(b *testing.B) {
	set, n := Set{Width: wide}, uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		var sum Sum
		binary.BigEndian.PutUint64(sum[:8], n*0x9E3779B97F4A7C15)
		set.Add(sum)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
