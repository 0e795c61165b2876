package provider

import (
	"net/http"

	"github.com/headrace/headrace/provider/rawjson"
)

// Doubtful counts calls that were sent and whose answer did not come whole. A provider may
// bill such a call, and nothing says how much.
type Doubtful struct {
	Calls int
	// Usage is the usage that these answers reported before they were cut off. The calls may have
	// used more, and most answers report nothing so early.
	Usage Usage
}

// Add returns the sum of both.
func (d Doubtful) Add(e Doubtful) Doubtful {
	return Doubtful{Calls: d.Calls + e.Calls, Usage: d.Usage.Add(e.Usage)}
}

// Doubtful returns what is doubtful of an attempt that ended with err: the call and its usage,
// or nothing. It returns nothing if the attempt succeeded, if no request left, or if the
// provider refused it. A refusal is an answer, and its usage counts.
func (r *Record) Doubtful(err error) Doubtful {
	sent := r.Sent || r.HasUsage // what never left reports no usage
	if err == nil || !sent || !r.Cut && (r.refused || !endsInDoubt(err)) {
		return Doubtful{}
	}
	return Doubtful{Calls: 1, Usage: r.Usage}
}

// endsInDoubt reports whether an error leaves open what the provider did with the call.
func endsInDoubt(err error) bool {
	switch ClassifyErr(err).Kind {
	case Timeout, TransportFault, Canceled:
		return !Unsent(err)
	}
	return false
}

// refuses reports whether an answer of that status does not come from the model.
func refuses(status int) bool { return status >= http.StatusMultipleChoices }

// TornUsage returns the usage in an answer of one JSON object that was cut off. It returns
// false if the usage had not come whole.
func TornUsage(body []byte) (Usage, bool) {
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "usage", "usageMetadata", "meta":
			if rawjson.Valid(value) { // cut off inside, it is not
				return UsageIn(value)
			}
		}
	}
	return Usage{}, false
}
