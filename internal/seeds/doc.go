// Package seeds lets tests try random worlds, each by a seed, so that one that fails can be had again.
//
// It promises that what is tried does not depend on chance: the seeds from 0 on, unless the environment says otherwise.
//
//	SEED=7                    only that one
//	SEEDS=5000                so many
//	SEED_BASE=17953846210000  from that one on
//
// It is for tests alone.
package seeds
