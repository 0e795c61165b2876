package main

import (
	"testing"

	"go.uber.org/goleak"
)

// The example, run to its end, leaves nothing running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItEnds(*testing.T) { main() }
