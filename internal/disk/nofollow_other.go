//go:build !unix

package disk

// NoFollow is 0 where the system has no such flag.
const NoFollow = 0
