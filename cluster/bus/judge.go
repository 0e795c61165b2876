package bus

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// judge returns the defects of a bus.
func judge(r Report, f facts) (found []Finding) {
	say := func(is, unsafe bool, what, why string) {
		if is {
			found = append(found, Finding{Unsafe: unsafe, What: what, Why: why})
		}
	}
	say(older(r.Version, 2, 10), true, "server "+r.Version+" is older than 2.10", "streams cannot begin at any number: a keeper could take a lost lease for his own")
	say(!f.loopback && !r.TLS, true, "no TLS", "anyone on the network path can read everything, the token too")
	say(!f.loopback && !f.secret, true, "neither token nor user", "everybody may be worker or keeper")
	say(!r.Hub, false, "not known whether each write is synced", "set sync_interval: always; what a server forgets costs repeated looks into the store")
	say(r.Way > slowWay, false, fmt.Sprintf("a request takes %v", r.Way.Round(time.Millisecond)), "owners of chunks have 0.3 s to answer, permits live 2 s")
	say(r.ClockAhead.Abs() > wrongClock, false, fmt.Sprintf("its clock is %v ahead of ours", r.ClockAhead.Round(time.Second)), "no clocks are compared; times in logs will not match")
	say(f.payload < MaxLease+(8<<10), true, fmt.Sprintf("messages have at most %d bytes", f.payload), "the keeper's lease does not fit")
	say(low(f.limits.MaxStore, leastStore), true, fmt.Sprintf("the account may keep %d bytes", f.limits.MaxStore), "10,000 chunks of each of ten jobs do not fit")
	say(low(int64(f.limits.MaxStreams), 2), true, fmt.Sprintf("the account may have %d streams", f.limits.MaxStreams), "there are two")
	for _, s := range f.streams {
		found = append(found, judgeStream(r, s)...)
	}
	return found
}

// low reports whether a limit is below need. 0 and -1 mean no limit.
func low(limit, need int64) bool { return limit > 0 && limit < need }

func judgeStream(r Report, s streamFacts) (found []Finding) {
	say := func(is, unsafe bool, what, why string) {
		if is {
			found = append(found, Finding{Unsafe: unsafe, What: "stream " + s.name + ": " + what, Why: why})
		}
	}
	say(r.Cluster != "" && s.have.Replicas < 3, true, fmt.Sprintf("%d replicas in a cluster", s.have.Replicas), "the death of one server stops everything")
	say(len(s.away) > 0, true, "replicas are away or behind: "+strings.Join(s.away, ", "), "the next death stops everything")
	say(s.have.Storage != jetstream.FileStorage, false, "it is kept in memory", "each restart costs looks into the store")
	say(s.have.Retention != s.want.Retention, true, fmt.Sprintf("retention %v, not %v", s.have.Retention, s.want.Retention), "what is done is given out again")
	say(s.have.MaxMsgsPerSubject != s.want.MaxMsgsPerSubject || s.have.DiscardNewPerSubject != s.want.DiscardNewPerSubject, true,
		"more than one message a subject", "a chunk that is queued twice is given out twice")
	say(s.have.MaxAge != 0, true, fmt.Sprintf("messages end after %v", s.have.MaxAge), "chunks vanish from the queue, and the lease")
	say(s.have.AllowDirect && !s.want.AllowDirect, false, "followers answer reads", "what they say may be old")
	return found
}

// older reports whether a version is before another; false if it cannot be read.
func older(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return false
	}
	return a < major || a == major && b < minor
}
