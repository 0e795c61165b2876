package servers

import (
	"net/http"
	"sync/atomic"
)

// Tally counts a server's answers so far.
type Tally struct {
	Answered int64 `json:"answered"`
	Refused  int64 `json:"refused"` // 429 and 503: come back later
	Faults   int64 `json:"faults"`  // any other status
}

// add books answers of one status.
func (t *Tally) add(status, times int64) {
	switch status {
	case http.StatusOK:
		t.Answered += times
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		t.Refused += times
	default:
		t.Faults += times
	}
}

// counter counts for servers in this process.
type counter struct{ answered, refused, faults atomic.Int64 }

func (c *counter) tally() (Tally, error) {
	return Tally{c.answered.Load(), c.refused.Load(), c.faults.Load()}, nil
}

// around sees each status before the client does: when a run has ended, all of it has been
// counted.
func (c *counter) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&seen{ResponseWriter: w, count: c.add}, r)
	})
}

func (c *counter) add(status int) {
	var one Tally
	one.add(int64(status), 1)
	c.answered.Add(one.Answered)
	c.refused.Add(one.Refused)
	c.faults.Add(one.Faults)
}

// seen reports the first status that is written.
type seen struct {
	http.ResponseWriter
	count func(status int)
	said  bool
}

func (s *seen) WriteHeader(status int) {
	if !s.said {
		s.said = true
		s.count(status)
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seen) Write(b []byte) (int, error) {
	if !s.said {
		s.WriteHeader(http.StatusOK)
	}
	return s.ResponseWriter.Write(b)
}
