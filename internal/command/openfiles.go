package command

import "fmt"

// ownFiles is the number of files and sockets that the process needs besides its calls. These
// are three streams, three files, the runtime's own, name lookups, and as much again.
const ownFiles = 32

// lowerConcurrency keeps a run from a storm of failures to open a socket, and returns the
// notice about it.
func (r *runner) lowerConcurrency() string {
	limit, asked := openFiles(), r.flags.concurrency
	if r.backend.books != nil {
		return ""
	}
	if r.flags.concurrency = callsWithin(limit, asked); r.flags.concurrency == asked {
		return ""
	}
	return fmt.Sprintf("at most %d files may be open here, too few for --concurrency %d: lowered to %d (ulimit -n raises it)",
		limit, asked, r.flags.concurrency)
}

// callsWithin returns how many of the calls asked for may be in flight where limit files may be
// open. A limit of 0 means that it is not known.
func callsWithin(limit uint64, asked int) int {
	if limit == 0 || uint64(asked)+ownFiles <= limit {
		return asked
	}
	return max(1, int(limit)-ownFiles)
}
