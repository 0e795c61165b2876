package provider

import (
	"net/http"

	"github.com/headrace/headrace/provider/rawjson"
)

// Doubtful counts calls that were sent and whose answer did not come whole. A provider may
// bill such a call, and nothing says how much.
type Doubtful struct {
	Calls int
	// Usage is what these answers had told before they were cut off. The calls may have used
	// more, and most answers tell nothing so early.
	Usage Usage
}

// Add returns the sum of both.
func (d Doubtful) Add(e Doubtful) Doubtful {
	return Doubtful{Calls: d.Calls + e.Calls, Usage: d.Usage.Add(e.Usage)}
}

// Doubtful says what of an attempt that ended with err is doubtful: the call and its usage, or
// nothing. It is nothing if the attempt has succeeded, if no request left, or if the provider
// refused it: a refusal is an answer, and its usage counts.
func (r *Record) Doubtful(err error) Doubtful {
	sent := r.Sent || r.HasUsage // of what never left nobody tells what it used
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

// refuses reports whether an answer of that status is none of the model's.
func refuses(status int) bool { return status >= http.StatusMultipleChoices }

// TornUsage is what an answer of one JSON object says of its usage that was cut off, if that
// part had come whole. It is false if it had not.
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
