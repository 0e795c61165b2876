package limiter

// sendsKept is how many calls a law remembers. It is what the longest interval
// that it measures holds: two minutes at seventy calls a second. Where more
// were made, the interval begins at the oldest that is remembered.
const sendsKept = 1 << 13

// A send is one call that left.
type send struct {
	at      float64
	cost    Cost
	sum     float64 // of the requests of all sends up to this one
	refused bool
}

// sends remembers the latest calls in the order in which they left.
//
// Invariant: at and sum never fall from one send to the next.
type sends struct {
	ring  []send
	count uint64  // sends ever; the number of the next one
	sum   float64 // of the requests of all sends
}

func (s *sends) add(at float64, cost Cost) uint64 {
	s.sum += cost.Requests
	e := send{at: at, cost: cost, sum: s.sum}
	if len(s.ring) < sendsKept {
		s.ring = append(s.ring, e)
	} else {
		s.ring[s.count%sendsKept] = e
	}
	s.count++
	return s.count - 1
}

func (s *sends) get(n uint64) *send { return &s.ring[n%sendsKept] }

func (s *sends) oldest() uint64 { return s.count - uint64(len(s.ring)) }

func (s *sends) warm() uint64 {
	if s.count == 0 {
		return 0
	}
	return uint64(int64(s.get(s.count - 1).at)) // where the next one goes is the same line, or the one after it
}

// after is the number of the first send that is remembered and left after t.
func (s *sends) after(t float64) uint64 {
	first := s.oldest()
	low, high := first, s.count
	for low < high {
		if mid := low + (high-low)/2; s.get(mid).at > t {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// refuse marks a send as refused: the provider did not charge it.
func (s *sends) refuse(n uint64) {
	if n < s.count && n >= s.oldest() {
		s.get(n).refused = true
	}
}

// drawn is how many requests were sent in (from, to].
func (s *sends) drawn(from, to float64) float64 {
	a, b := s.after(from), s.after(to)
	if a >= b {
		return 0
	}
	first := s.get(a)
	return s.get(b-1).sum - first.sum + first.cost.Requests
}
