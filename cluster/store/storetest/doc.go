// Package storetest tests what every store must do, and has stores that nobody must trust.
//
// A store that passes Run keeps the promises of store.Store, except for the loss of power, which
// no test here can cause. Each of the Bad stores breaks one promise, always.
//
//	Run(t, open) ─▶ a fresh store for each test ─▶ names, races, stretches, lists, journals
package storetest
