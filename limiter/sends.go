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
//
// They lie in pieces, so that a lane which makes few calls keeps little, and what is
// kept need not be copied when there is more of it: send n is at n%sendsKept.
type sends struct {
	ring  []*[sendsPiece]send
	count uint64  // sends ever; the number of the next one
	sum   float64 // of the requests of all sends
}

// sendsPiece is a power of two, so that finding a send needs no division; sixteen are
// a quarter of what an idle lane takes.
const sendsPiece = 16

func (s *sends) add(at float64, cost Cost) uint64 {
	s.sum += cost.Requests
	if s.count < sendsKept && s.count%sendsPiece == 0 {
		s.ring = append(s.ring, new([sendsPiece]send))
	}
	*s.get(s.count) = send{at: at, cost: cost, sum: s.sum}
	s.count++
	return s.count - 1
}

func (s *sends) get(n uint64) *send {
	i := n % sendsKept
	return &s.ring[i/sendsPiece][i%sendsPiece]
}

func (s *sends) oldest() uint64 { return s.count - min(s.count, sendsKept) }

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
