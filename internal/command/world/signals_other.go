//go:build !unix

package world

import "os"

// AskSignals is empty: this system has no such signals.
func AskSignals() []os.Signal { return nil }

// OpenFiles does not know the limit: this system has none, or none that it reports.
func OpenFiles() uint64 { return 0 }

// IgnoreFullQuota does nothing: this system has no such signal.
func IgnoreFullQuota() {}
