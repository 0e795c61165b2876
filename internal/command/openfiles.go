package command

import "fmt"

// ownFiles is how many files and sockets the process needs beside its calls: three
// streams, three files, the runtime's own, name lookups, and as much again.
const ownFiles = 32

// lowerConcurrency keeps a run from a storm of failures to open a socket, and tells
// what is to be said of that.
func (r *runner) lowerConcurrency() string {
	limit := openFiles()
	if limit == 0 || r.backend.books != nil || uint64(r.flags.concurrency)+ownFiles <= limit {
		return ""
	}
	asked := r.flags.concurrency
	r.flags.concurrency = max(1, int(limit)-ownFiles)
	return fmt.Sprintf("at most %d files may be open here, too few for --concurrency %d: lowered to %d (ulimit -n raises it)",
		limit, asked, r.flags.concurrency)
}
