package limiter

// sendsKept is how many calls a law remembers. It is what the longest interval
// that it measures holds: two minutes at seventy calls a second. Where more
// were made, the interval begins at the oldest that is remembered.
const sendsKept = 1 << 13

// A send is one call that left. Ten thousand lanes that make two hundred calls each
// remember two million, so it holds no more than it must.
type send struct{ at, input, output float64 }

// sends remembers the latest calls in the order in which they left.
//
//	young: the latest few         in the law itself
//	ring:  all that left before   in pieces; send n is at n%sendsKept
//
// Invariant: neither at nor the running sum of requests falls from one send to the next.
//
// The ring lies in pieces, so that a lane which makes few calls keeps little, and what
// is kept need not be copied when there is more of it. It is written to once in
// sendsYoung calls, as each of thousands of lanes has its ring in a cold place.
type sends struct {
	count uint64 // sends ever; the number of the next one
	rare  *rare  // nil: each send was one request, and none was refused
	young [sendsYoung]send
	ring  []*[sendsPiece]send
}

// rare is what there is to say of few sends, or of the sends of few lanes.
type rare struct {
	weights []weight                     // send n is at n%sendsKept; nil: each was one request
	refused [sendsKept / wordBits]uint64 // a bit for each send
}

// A weight is how many requests a send was, and all sends up to this one.
type weight struct{ requests, sum float64 }

const (
	// sendsPiece is a multiple of sendsYoung and a power of two, so that the young fit in
	// one, and finding a send needs no division.
	sendsPiece = 16

	// sendsYoung is what a line and a half of a processor's cache hold.
	sendsYoung = 4

	wordBits = 64
)

func (s *sends) add(at float64, cost Cost) uint64 {
	n := s.count
	if s.rare != nil || cost.Requests != 1 {
		s.remark(n, cost.Requests)
	}
	s.young[n%sendsYoung] = send{at: at, input: cost.Input, output: cost.Output}
	s.count++
	if s.count%sendsYoung == 0 {
		s.move()
	}
	return n
}

// remark notes what is rare of send n. It hardly ever is another number of requests
// than one, and until then the sum of all up to send n is n+1, and is not remembered.
func (s *sends) remark(n uint64, requests float64) {
	r := s.rarely()
	r.refused[n%sendsKept/wordBits] &^= 1 << (n % wordBits) // that was another's
	if r.weights == nil && requests != 1 {
		r.weights = make([]weight, sendsKept)
		for i := s.oldest(); i < n; i++ {
			r.weights[i%sendsKept] = weight{1, float64(i + 1)}
		}
	}
	if r.weights == nil {
		return
	}
	sum := requests
	if n > 0 {
		sum += r.weights[(n-1)%sendsKept].sum
	}
	r.weights[n%sendsKept] = weight{requests, sum}
}

func (s *sends) rarely() *rare {
	if s.rare == nil {
		s.rare = &rare{}
	}
	return s.rare
}

// move takes the young, of which there are as many as there is room for, to the ring.
func (s *sends) move() {
	first := s.count - sendsYoung
	if first < sendsKept && first%sendsPiece == 0 {
		s.ring = append(s.ring, new([sendsPiece]send))
	}
	i := first % sendsKept
	copy(s.ring[i/sendsPiece][i%sendsPiece:], s.young[:])
}

func (s *sends) get(n uint64) *send {
	if n >= s.count-s.count%sendsYoung {
		return &s.young[n%sendsYoung]
	}
	i := n % sendsKept
	return &s.ring[i/sendsPiece][i%sendsPiece]
}

// from is send n and those after it that lie behind it: at least one, if n has left.
func (s *sends) from(n uint64) []send {
	moved := s.count - s.count%sendsYoung
	if n >= moved {
		return s.young[n-moved : s.count-moved]
	}
	i := n % sendsKept
	run := s.ring[i/sendsPiece][i%sendsPiece:]
	return run[:min(uint64(len(run)), moved-n)]
}

func (s *sends) at(n uint64) float64 { return s.get(n).at }

func (s *sends) weight(n uint64) weight {
	if s.rare == nil || s.rare.weights == nil {
		return weight{1, float64(n + 1)}
	}
	return s.rare.weights[n%sendsKept]
}

func (s *sends) cost(n uint64) Cost {
	e := s.get(n)
	return Cost{Requests: s.weight(n).requests, Input: e.input, Output: e.output}
}

// usual is what the provider took in dimension k for a send that was one request and not
// refused.
func (e *send) usual(k int) float64 {
	switch k {
	case dimRequests:
		return 1
	case dimTokens:
		return e.input + e.output
	case dimInput:
		return e.input
	}
	return e.output
}

// unusual is what it took for send n, which is e, where some are unlike that.
func (s *sends) unusual(n uint64, e *send, k int) float64 {
	switch {
	case s.wasRefused(n):
		return 0
	case k == dimRequests:
		return s.weight(n).requests
	}
	return e.usual(k)
}

func (s *sends) warm() uint64 {
	return s.count + uint64(int64(s.young[0].at+s.young[sendsYoung-1].at))
}

func (s *sends) oldest() uint64 { return s.count - min(s.count, sendsKept) }

// after is the number of the first send that is remembered and left after t.
func (s *sends) after(t float64) uint64 {
	first := s.oldest()
	low, high := first, s.count
	for low < high {
		if mid := low + (high-low)/2; s.at(mid) > t {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// refuse marks a send as refused: the provider did not charge it.
func (s *sends) refuse(n uint64) {
	if n >= s.count || n < s.oldest() {
		return
	}
	s.rarely().refused[n%sendsKept/wordBits] |= 1 << (n % wordBits)
}

func (s *sends) wasRefused(n uint64) bool {
	return s.rare != nil && s.rare.refused[n%sendsKept/wordBits]>>(n%wordBits)&1 == 1
}

// drawn is how many requests were sent in (from, to].
func (s *sends) drawn(from, to float64) float64 {
	a, b := s.after(from), s.after(to)
	if a >= b {
		return 0
	}
	first := s.weight(a)
	return s.weight(b-1).sum - first.sum + first.requests
}
