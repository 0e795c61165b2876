//go:build !unix

package command

// openFiles is not known here: there is no such limit, or none that can be asked for.
func openFiles() uint64 { return 0 }

// ignoreFullQuota has nothing to do here: there is no such signal.
func ignoreFullQuota() {}
