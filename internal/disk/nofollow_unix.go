//go:build unix

package disk

import "syscall"

// NoFollow makes open refuse a link instead of following it.
const NoFollow = syscall.O_NOFOLLOW
