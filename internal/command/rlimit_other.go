//go:build !unix

package command

// openFiles does not know the limit: this system has none, or none that it reports.
func openFiles() uint64 { return 0 }

// ignoreFullQuota does nothing: this system has no such signal.
func ignoreFullQuota() {}
