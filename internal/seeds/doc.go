// Package seeds lets tests try random worlds, each from a seed, so that a failing one can be repeated.
//
// It promises that the choice of seeds does not depend on chance: they count from 0, unless the environment says
// otherwise.
//
//	SEED=7                    only that one
//	SEEDS=5000                so many
//	SEED_BASE=17953846210000  from that one on
//
// It is for tests alone, and a package of its own because those of many packages need it.
package seeds
