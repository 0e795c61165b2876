// Package catalog holds what is known of providers: the address, dialect and key of each, its
// way of counting, and the meaning of its words. A vendor is a row of data; a dialect is code,
// and has a package of its own.
//
// It promises that a row says only what its maker documents or what others have published.
// Each word to which a row gives a meaning of its own is in a recorded answer of
// provider/providertest. No two rows claim one host.
//
//	name, place, key ──Client──▶ a client of provider/wire that knows all of it
//
//	name ──Named──▶ ┌────────────────────────┐ ──Address──▶ base URL
//	                │ Vendor                 │ ──Keys──────▶ environment
//	URL ────For───▶ │  address, key, dialect │ ──Charge────▶ what a call draws
//	                │  limits, charge, words │ ──Periods───▶ what headers mean
//	       rows ──▶ └────────────────────────┘ ──Wording───▶ what an error means
//
// docs/providers.md shows all rows, and is generated from them.
package catalog
