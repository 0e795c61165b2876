//go:build unix

package disk

import "syscall"

// NoFollow opens what bears the name, and not what a link of that name leads to.
const NoFollow = syscall.O_NOFOLLOW
