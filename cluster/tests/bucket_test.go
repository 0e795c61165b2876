package tests

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/store/s3test"
)

// foul is a bucket on a bad day: it is busy, loses answers, lets connections hang, lists slowly, and is
// away for seconds now and then.
func foul(seed uint64) s3test.Weather {
	return s3test.Weather{
		Seed: seed, Busy: 0.05, Broken: 0.04, Unheard: 0.08, Hanging: 0.01, Hang: 3 * time.Second, SlowList: 400 * time.Millisecond,
		Every: 15 * time.Second, Away: 5 * time.Second,
	}
}

// A job whose home and input are in a bucket comes to its end on the bucket's bad day, while workers are
// killed. Nothing is lost or written twice, and no saved question is asked again.
func TestTheBucketHasABadDay(t *testing.T) {
	t.Parallel()
	chance := seeded(t)
	length := usually(12*time.Second, time.Hour)
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: strict(5 * time.Second), bucket: true})
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "bucket", int(length.Seconds()*rate))
	customer, output := f.customer(q, "out", "--chunk-lines", "150")
	f.begun(rate, customer)
	f.bucket.Fault(foul(chance.Uint64()).From(time.Now()))
	f.weather(schedule(chance, length, habit{aWorker, killing, often, brief}), customer.over)
	f.delivers(q, customer, output)
	f.judged(false)
	f.oneWroteEach()
	for name, fault := range map[string]s3test.Fault{"too busy": s3test.SlowDown, "a lost answer": s3test.LoseAnswer, "a lost request": s3test.LoseAsk} {
		if f.bucket.Faults(fault) == 0 {
			t.Errorf("there was no request with %s: the day was not bad", name)
		}
	}
	if f.struck() == 0 {
		t.Error("nobody was killed")
	}
}

// oneWroteEach fails the test if the bucket let two write what only one may: parts, records of jobs, epochs.
func (f *fleet) oneWroteEach() {
	f.t.Helper()
	parts := 0
	for name, times := range f.bucket.Created() {
		switch {
		case strings.Contains(name, "/parts/"):
			parts++
		case strings.Contains(name, "/job-"), strings.Contains(name, "/epoch-"):
		default:
			continue
		}
		if times > 1 {
			f.t.Errorf("%s was written %d times", name, times)
		}
	}
	if parts == 0 {
		f.t.Error("no part was written to the bucket")
	}
	f.t.Logf("%d parts; %d requests", parts, f.bucket.Requests())
}
