// Package storetest is what every store must do, and stores that must not be trusted.
//
// It promises that a store that passes Run keeps what store.Store says, but for the loss of power,
// which no test here can cause; and that each of the Bad stores breaks one promise, always.
//
//	Run(t, open) ─▶ a fresh store for each test ─▶ names, races, stretches, lists, journals
package storetest
