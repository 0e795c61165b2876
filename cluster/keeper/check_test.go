package keeper

import (
	"fmt"

	"github.com/headrace/headrace/cluster/permit"
)

// audit finds what is wrong with the books of a keeper; "" if nothing is.
func audit(k *Keeper) string {
	inFlight := map[string]int{}
	for _, s := range k.machine.Status(k.now, len(k.order)).Lanes {
		inFlight[s.Name] = s.InFlight
	}
	waits, holds := map[*limit]int{}, map[*limit]int{}
	if len(k.line) != len(k.peers) {
		return fmt.Sprintf("%d peers in line and %d by name", len(k.line), len(k.peers))
	}
	for _, p := range k.line {
		if fault := auditPeer(k, p); fault != "" {
			return fmt.Sprintf("%v: %s", p.name, fault)
		}
		waits[p.limit] += len(p.offers)
		holds[p.limit] += len(p.permits)
	}
	for _, l := range k.order {
		switch teams := 0; {
		case l.waiting > MaxWaiting:
			return fmt.Sprintf("%s: %d permits wait", l.name, l.waiting)
		case holds[l] != inFlight[l.name]:
			return fmt.Sprintf("%s: the machine has %d calls in flight, and the books %d", l.name, inFlight[l.name], holds[l])
		case waits[l] > l.waiting:
			return fmt.Sprintf("%s: %d permits wait, and peers have %d", l.name, l.waiting, waits[l])
		default:
			for _, t := range l.turns {
				teams += t.peers
				if l.teams[t.job] != t || t.peers == 0 {
					return fmt.Sprintf("%s: team %s", l.name, t.job)
				}
			}
		}
	}
	return ""
}

func auditPeer(k *Keeper, p *peer) string {
	if k.peers[p.name] != p {
		return "it is in line, and nobody has its name"
	}
	inLine := 0
	for _, q := range p.team.line {
		if q == p {
			inLine++
		}
	}
	boxed := 0
	for _, q := range k.outbox {
		if q == p {
			boxed++
		}
	}
	switch {
	case p.inLine != (inLine == 1) || inLine > 1:
		return fmt.Sprintf("it is %d times in its team's line", inLine)
	case p.needs() && !p.inLine && k.now.Sub(p.heard) <= silent:
		return "it needs a permit, and is in no line"
	case p.inOutbox != (boxed == 1) || boxed > 1:
		return fmt.Sprintf("it is %d times in the outbox", boxed)
	case len(p.outgoing) > 0 && !p.inOutbox:
		return "there is something for it, and it is not in the outbox"
	case p.taken < len(p.offers):
		return fmt.Sprintf("%d of its wants are taken, and %d permits wait", p.taken, len(p.offers))
	case len(p.wants) > permit.MaxWants:
		return "it wants too much"
	}
	for _, h := range p.offers {
		if h.state != waiting || h.peer != p {
			return "what waits is not waiting"
		}
	}
	for _, h := range p.outgoing {
		if h.state != outgoing || h.wave != p.limit.wave {
			return fmt.Sprintf("permit %d is to be given, in state %d, of wave %d at wave %d", h.number, h.state, h.wave, p.limit.wave)
		}
	}
	for number, h := range p.permits {
		if h.number != number || h.peer != p || h.state == waiting || h.state == over {
			return fmt.Sprintf("permit %d is in state %d", number, h.state)
		}
		if h.state != sent && k.now.Sub(h.at) > permit.Forgotten+2*permit.GiveEvery {
			return fmt.Sprintf("permit %d was granted %v ago, and nothing was said of it", number, k.now.Sub(h.at))
		}
	}
	return ""
}
