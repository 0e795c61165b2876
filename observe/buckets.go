package observe

import (
	"math"
	"time"
)

// Buckets is a histogram of latencies. It holds only the buckets that are not empty, in the
// order of their numbers. Bucket k holds latencies over growth^(k-1) ms and up to growth^k ms.
// Bucket 0 holds those of at most 1 ms. A quantile is therefore off by 5 % at most.
type Buckets []Bucket

// A Bucket is one of them.
type Bucket struct{ Number, Count int }

const (
	bucketGrowth = 1.1
	// lastBucket ends at 13 hours: longer than any call takes.
	lastBucket = 185
)

// bucketEnds holds the longest latency in each bucket.
var bucketEnds = func() (ends [lastBucket + 1]time.Duration) {
	for k := range ends {
		ends[k] = time.Duration(math.Pow(bucketGrowth, float64(k)) * float64(time.Millisecond))
	}
	return ends
}()

// bucketOf returns the number of a latency's bucket. It searches for it, which takes half the
// time of a logarithm.
func bucketOf(d time.Duration) int {
	low, high := 0, lastBucket
	for low < high {
		if mid := (low + high) / 2; d <= bucketEnds[mid] {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// middleOf returns the latency that stands for a bucket: the geometric middle of its ends.
func middleOf(number int) time.Duration {
	return time.Duration(math.Pow(bucketGrowth, float64(number)-0.5) * float64(time.Millisecond))
}

// Count returns the number of latencies in all buckets.
func (b Buckets) Count() (n int) {
	for _, k := range b {
		n += k.Count
	}
	return n
}

// Quantile returns the latency under which the share q of them lies, q in 0..1; 0 if there
// are none.
func (b Buckets) Quantile(q float64) time.Duration {
	rank, seen := int(math.Ceil(q*float64(b.Count()))), 0
	for _, k := range b {
		if seen += k.Count; seen >= max(1, rank) {
			return middleOf(k.Number)
		}
	}
	return 0
}

// merge returns the sum of both.
func (b Buckets) merge(c Buckets) Buckets {
	sum := make(Buckets, 0, len(b)+len(c))
	for len(b) > 0 || len(c) > 0 {
		switch {
		case len(c) == 0 || len(b) > 0 && b[0].Number < c[0].Number:
			sum, b = append(sum, b[0]), b[1:]
		case len(b) == 0 || c[0].Number < b[0].Number:
			sum, c = append(sum, c[0]), c[1:]
		default:
			sum = append(sum, Bucket{b[0].Number, b[0].Count + c[0].Count})
			b, c = b[1:], c[1:]
		}
	}
	return sum
}
