package tests

import (
	"context"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/cluster/permit"
)

// Messages that name an epoch which no keeper has, or a version that no keeper speaks, stop nobody: the job ends whole, and
// each worker goes on.
func TestFalseMessagesStopNobody(t *testing.T) {
	t.Parallel()
	const items, far = 600, 1 << 62
	f := troubled(t)
	f.begins("w1", nil)
	f.begins("w2", nil)
	q := writePrompts(t, f.dir, "some", items)
	customer, output := f.customer(q, "out", "--chunk-lines", "10")
	f.begun(20, customer)
	line, _, err := node.SplitHome(f.url())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Connect(context.Background(), bus.Config{URL: line, Name: "liar"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	job := f.jobNamed(customer)
	for range 10 {
		for what, err := range map[string]error{
			"wave":    b.SendCool(permit.Cool{Version: permit.Version, Limit: "org", Epoch: far, Wave: 1}),
			"ask":     b.SendAsk(permit.Ask{Version: permit.Version, Worker: "liar", Job: job, Limit: "org", Seq: 1, Epoch: far}),
			"version": b.Say(bus.Keeper, "liar", node.Picture{Version: permit.Version + 1, Epoch: far}),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.delivers(q, customer, output)
	for _, w := range f.workers {
		if !w.running() {
			t.Errorf("%s has ended: %s", w.name, w.lastWords())
		}
	}
	f.judged(false)
}
