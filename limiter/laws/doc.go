// Package laws makes the law that a lane is configured with. It is the one place that knows all
// of them, so that package limiter is the vocabulary of laws and needs none.
//
//	limiter.LawConfig ─New─▶ its Maker's law, if it has one
//	                         model.Law, plain.Law or limiter.Unlimited
//
// A [limiter.Maker] that only adds to a law calls New with the configuration that it is given.
//
// It is small because it only chooses: it must stand above the laws that it imports, and limiter below them.
package laws
