package prompts

import (
	"errors"
)

const (
	// MaxComplaints is the number of bad lines that a Check lists; the rest are counted. A
	// hundred fill a few screens, and a file of another kind has one on each line.
	MaxComplaints = 100
	// MaxModels is the number of models that a Summary counts by name.
	MaxModels = 1000
)

// Summary sums up the input of a Check.
type Summary struct {
	Lines       int            // lines read, blank and bad ones included
	Items       int            // requests
	Bad         int            // lines that are not requests
	Bytes       int64          // of all bodies
	Models      map[string]int // requests by model, for up to MaxModels models
	OtherModels int            // requests to further models
	Endpoints   map[string]int // requests by endpoint
}

// Check reads r to its end. It returns a summary of the requests, and the first
// MaxComplaints of the bad lines. The error says why the input could not be read on; the
// other two then describe the lines before. It takes the reader's memory: BytesPerItem for
// each item.
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
