package prompts

import (
	"errors"
)

const (
	// MaxComplaints is how many bad lines a Check lists; the rest are counted. A
	// hundred fill a few screens, and a file of another kind has one on each line.
	MaxComplaints = 100
	// MaxModels is how many models a Summary counts by name.
	MaxModels = 1000
)

// Summary is what a Check has seen.
type Summary struct {
	Lines       int            // lines read, blank and bad ones included
	Items       int            // requests
	Bad         int            // lines that are no requests
	Bytes       int64          // of all bodies
	Models      map[string]int // requests by model, MaxModels of them
	OtherModels int            // requests to models beyond those
	Endpoints   map[string]int // requests by endpoint
}

// Check reads r to its end and tells what is in it: the requests, summed up, and
// the bad lines, the first MaxComplaints of them. The error is what kept it from
// reading on; then the other two tell of what came before. Memory is that of the
// reader: BytesPerItem for each item.
func Check(r *Reader) (Summary, []*LineError, error) {
	sum := Summary{Models: make(map[string]int), Endpoints: make(map[string]int)}
	var bad []*LineError
	r.cfg.Passing, r.cfg.NoKeys = true, true
	for req, err := range r.All() {
		var complaint *LineError
		switch {
		case err == nil:
			sum.add(&req)
		case !errors.As(err, &complaint):
			sum.Lines = r.Line()
			return sum, bad, err
		default:
			if sum.Bad++; len(bad) < MaxComplaints {
				bad = append(bad, complaint)
			}
		}
	}
	sum.Lines = r.Line()
	return sum, bad, nil
}

func (s *Summary) add(req *Request) {
	s.Items++
	s.Bytes += int64(len(req.Body))
	s.Endpoints[req.Endpoint]++
	if _, known := s.Models[req.Model]; known || len(s.Models) < MaxModels {
		s.Models[req.Model]++
		return
	}
	s.OtherModels++
}
