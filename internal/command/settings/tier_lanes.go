package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/provider/catalog"
)

// With --service-tier auto, or service-tier: auto in the file, a lane becomes two: one of the flex
// tier, and behind it one of the standard tier.
//
//	prefer: [[a, b], c]  ─▶  prefer: [[a-flex, b-flex], [a, b], c-flex, c]
//
// A lane without these tiers stays where it was, next to the flex lanes of the others.

// inheritTier gives the lane the tier of the run, if the lane has none of its own and its provider has
// tiers.
func (l *LaneSpec) inheritTier(inherited bool) {
	if inherited && l.Flags.Tier() == "" {
		l.Flags.ServiceTier = ""
	}
}

// isAuto reports whether a lane of the file asks for both tiers of service.
func (f *Fleet) isAuto() bool {
	return slices.ContainsFunc(f.Lanes, func(l LaneSpec) bool { return l.Flags.ServiceTier == TierAuto || l.Base != "" })
}

// checkTierOffered says that no lane has the tier of --service-tier.
func (f *Fleet) checkTierOffered(tier string) error {
	if tier == "" || slices.ContainsFunc(f.Lanes, func(l LaneSpec) bool { return l.Flags.ServiceTier != "" }) {
		return nil
	}
	return fmt.Errorf("--service-tier %s: no lane has such a tier that is known here: remove it", tier)
}

// splitTiers replaces each lane that uses both tiers of service by two. The standard one is used once flex
// has had no room for the time of spill.
func (f *Fleet) splitTiers(spill time.Duration) error {
	if !f.isAuto() {
		return nil
	}
	if len(f.Pools) == 0 {
		f.Pools = f.UsedPools()
	}
	var lanes []LaneSpec
	flexOf := map[string]string{}
	for i := range f.Lanes {
		lane := f.Lanes[i]
		if lane.Flags.ServiceTier != TierAuto {
			lanes = append(lanes, lane)
			continue
		}
		flex := lane.inTier(catalog.Flex)
		flex.Name, flex.Base = FlexLane(lane.Name), lane.Name
		if lane.Quota != "" {
			flex.Quota = FlexLane(lane.Quota)
		}
		if f.Lane(flex.Name) != nil {
			return lane.inFile(f.File, fmt.Errorf("service-tier: auto makes a lane %s of it, and the file has one: give that another name", flex.Name))
		}
		flexOf[lane.Name] = flex.Name
		lanes = append(lanes, flex, lane.inTier(catalog.Standard))
	}
	if f.Lanes = lanes; len(lanes) > MostLanes {
		return errors.New("service-tier: auto makes two lanes of one, and these are too many: a run may have " + fmt.Sprint(MostLanes))
	}
	for i := range f.Pools {
		f.Pools[i].splitTiers(flexOf, spill)
	}
	return nil
}

// inTier returns a copy of the lane that asks for a tier.
func (l LaneSpec) inTier(tier string) LaneSpec {
	flags := *l.Flags
	flags.ServiceTier = tier
	l.Flags = &flags
	return l
}

// splitTiers puts a tier of flex lanes before each tier that has lanes with one. Calls move on to the
// standard lanes after spill, which then holds for all tiers of the pool.
func (p *PoolSpec) splitTiers(flexOf map[string]string, spill time.Duration) {
	var tiers [][]string
	for _, lanes := range p.Tiers {
		flex, standard := []string{}, []string{}
		for _, lane := range lanes {
			flex = append(flex, cmp.Or(flexOf[lane], lane))
			if flexOf[lane] != "" {
				standard = append(standard, lane)
			}
		}
		tiers = append(tiers, flex)
		if len(standard) > 0 {
			tiers, p.After = append(tiers, standard), spill
		}
	}
	p.Tiers = tiers
}
