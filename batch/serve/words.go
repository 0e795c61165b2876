package serve

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/provider"
)

// The headers that a client may send. All of them end here.
const (
	prefix         = "X-Headrace-"
	headerPriority = prefix + "Priority"
	headerClient   = prefix + "Client"
	headerTag      = prefix + "Tag"
	headerMaxWait  = prefix + "Max-Wait"
	headerDeadline = prefix + "Deadline"
	headerKeep     = prefix + "Keepalive"
)

// Names of the same wishes elsewhere: of the inference gateways of Kubernetes, and the patience that
// SDKs of Stainless tell in seconds. They are passed on, too.
const (
	aliasFirstToken = "X-Slo-Ttft-Ms"
	aliasClient     = "X-Gateway-Inference-Fairness-Id"
	aliasPriority   = "X-Gateway-Inference-Objective"
	sdkReadTimeout  = "X-Stainless-Read-Timeout"
	sdkTimeout      = "X-Stainless-Timeout"
)

// sdkMargin is the time between the server's answer and the end of an SDK's patience.
const sdkMargin = 10 * time.Second

// leastWait is the patience of a request that must leave at once: a lane with room lets a call leave in
// far less.
const leastWait = 100 * time.Millisecond

// wishes are what a client asks of the line.
type wishes struct {
	class     door.Class
	client    string
	tag       string
	maxWait   time.Duration // until the call leaves
	timeout   time.Duration // of the request; 0: no bound
	keepAlive bool          // blanks may come before an answer that is no stream
}

// readWishes reads the wishes of a client at the time now. It refuses a header that cannot be read.
func (s *Server) readWishes(h http.Header, c *door.Client, now time.Time) (w wishes, refusal *provider.Refusal) {
	w = wishes{class: max(door.Normal, c.First), client: c.Name, maxWait: s.cfg.MaxWait, keepAlive: h.Get(headerKeep) == "1", tag: h.Get(headerTag)}
	refuse := func(header string) *provider.Refusal {
		return &provider.Refusal{Status: http.StatusBadRequest, Code: "headrace_header", Message: "the header " + header + " cannot be read"}
	}
	class, known := classOf(h)
	if !known {
		return w, refuse(headerPriority)
	}
	w.class = max(class, c.First)
	if v := h.Get(headerClient); v != "" {
		if !door.IsName(v) {
			return w, refuse(headerClient)
		}
		if c.MayName {
			w.client = v
		}
	} else if v := h.Get(aliasClient); c.MayName && door.IsName(v) {
		w.client = v
	}
	if w.tag != "" && !door.IsName(w.tag) {
		return w, refuse(headerTag)
	}

	w.maxWait = min(w.maxWait, patienceOf(h))
	if v := h.Get(headerMaxWait); v != "" { // a client's own word is more than its SDK's
		d, err := duration(v)
		if err != nil || d < 0 {
			return w, refuse(headerMaxWait)
		}
		w.maxWait = d
	}
	if v := h.Get(headerDeadline); v != "" {
		d, err := duration(v)
		if at, err2 := time.Parse(time.RFC3339, v); err2 == nil {
			d, err = at.Sub(now), nil
		}
		if err != nil {
			return w, refuse(headerDeadline)
		}
		if w.timeout = d; d <= 0 {
			return w, tooOld()
		}
	}
	w.maxWait = max(w.maxWait, leastWait)
	return w, nil
}

// classOf returns the class that a client asks for; Normal: it asks for none. It is false for a class that is not known.
// An alias is another program's header, whose unknown values are passed over.
func classOf(h http.Header) (class door.Class, known bool) {
	if v := h.Get(headerPriority); v != "" {
		return door.ClassOf(v)
	}
	if class, known = door.ClassOf(h.Get(aliasPriority)); !known {
		class = door.Normal
	}
	return class, true
}

// patienceOf returns how long a client waits for its call to leave, by the headers of its SDK; the longest duration if
// they say nothing.
func patienceOf(h http.Header) time.Duration {
	wait := time.Duration(math.MaxInt64)
	for _, name := range [...]string{sdkReadTimeout, sdkTimeout} {
		if seconds, err := strconv.ParseFloat(h.Get(name), 64); err == nil && seconds > 0 && seconds < maxSeconds {
			timeout := time.Duration(seconds * float64(time.Second))
			wait = max(timeout-sdkMargin, timeout/2)
			break
		}
	}
	if ms, err := strconv.ParseFloat(h.Get(aliasFirstToken), 64); err == nil && ms > 0 && ms < maxSeconds*1000 {
		wait = min(wait, time.Duration(ms*float64(time.Millisecond)))
	}
	return wait
}

// maxSeconds bounds what an SDK may say of its patience: a year.
const maxSeconds = 365 * 24 * 3600

// duration reads a duration, or a number of seconds.
func duration(v string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(v, 64); err == nil && seconds >= 0 && seconds < maxSeconds {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return time.ParseDuration(strings.TrimSpace(v))
}
