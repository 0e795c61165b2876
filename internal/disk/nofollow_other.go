//go:build !unix

package disk

// NoFollow is nothing where the system cannot be asked for it.
const NoFollow = 0
