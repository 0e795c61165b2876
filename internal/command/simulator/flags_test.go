package simulator

import (
	"fmt"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// The flags of sim change its profile and nothing else of it.
func TestSimFlags(t *testing.T) {
	config := func(args ...string) (sim.Config, error) {
		var f SimFlags
		fs := pflag.NewFlagSet("sim", pflag.ContinueOnError)
		f.Register(fs)
		must.Do(t, fs.Parse(args))
		return f.Config(fs)
	}
	got := must.Get(config("--rpm", "60", "--latency", "1s", "--sigma", "0.1", "--retry-after", "sometimes",
		"--errors", "500=0.1, reset=0.02", "--outage", "10s+5s,1m+30s:hang,2m+1s:flex", "--quota-after", "7", "--headers", "--seed", "3"))(t)
	want := sim.Demo()
	want.RPM, want.Latency, want.RetryAfter, want.Headers = 60, sim.Latency{Median: time.Second, Sigma: 0.1}, sim.Sometimes, true
	want.Errors = sim.Rates{Server500: 0.1, Reset: 0.02}
	want.Outages = []sim.Outage{{From: 10 * time.Second, For: 5 * time.Second, Mode: sim.Outage503}, {From: time.Minute, For: 30 * time.Second, Mode: sim.OutageHang}, {From: 2 * time.Minute, For: time.Second, Mode: sim.OutageFlex}}
	want.QuotaAfter, want.Seed, want.TrackIDs = 7, 3, true
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, bad := range []string{"--errors=500", "--errors=500=x", "--errors=0.1", "--outage=5s", "--outage=x+5s", "--outage=5s+y", "--outage=1s+1s:gone", "--retry-after=maybe", "--profile=slow", "--rpm=-1"} {
		if _, err := config(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
