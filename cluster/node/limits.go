package node

import (
	"context"
	"encoding/json"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

// hearLimits tells the keeper what workers and people say of limits, until ctx ends. It does nothing else: no permit is
// given for a limit before it is known, and a foreman may be busy for seconds.
func (n *Node) hearLimits(ctx context.Context, k *keeping) {
	status, err := n.bus.Listen(bus.Status, "", newsKept)
	if err != nil {
		return // the connection has ended, and with it this keeper
	}
	defer status.Close()
	news, err := n.bus.Listen(bus.News, "", newsKept)
	if err != nil {
		return
	}
	defer news.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case said, open := <-status.C:
			if !open {
				return
			}
			k.hearStatus(ctx, said)
		case said, open := <-news.C:
			if !open {
				return
			}
			k.hearNews(ctx, said)
		}
	}
}

// hearStatus takes what limits are like of a worker that has calls under them.
func (k *keeping) hearStatus(ctx context.Context, w bus.Word) {
	var s struct {
		Limits map[string]machine.LaneConfig `json:"limits"`
	}
	if json.Unmarshal(w.Body, &s) != nil {
		return
	}
	for name, lane := range s.Limits {
		k.tell(ctx, limitOrder(name, lane))
	}
}

// hearNews takes a person's word about a limit.
func (k *keeping) hearNews(ctx context.Context, w bus.Word) {
	var n newsWord
	if json.Unmarshal(w.Body, &n) != nil {
		return
	}
	switch {
	case n.Reset != "":
		k.tell(ctx, resetOrder(n.Reset))
	case n.Set != nil:
		k.tell(ctx, setOrder(n.Set.Name, n.Set.Lane))
	}
}

// knows reports whether the keeper may hear an ask: nothing is given under a limit of which nobody has said what it is
// like. A worker says it when it first has a call under it, and then each second.
func (k *keeping) knows(a *permit.Ask) bool {
	_, known := k.limits[a.Limit]
	return known
}
