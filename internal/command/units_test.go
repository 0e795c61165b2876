package command

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
)

// What go run has built is called by go run again, if its source is here.
func TestCalledAs(t *testing.T) {
	built := "/tmp/go-build123/b001/exe/headrace"
	t.Chdir(t.TempDir())
	if got := world.CalledAs(built); got != "headrace" {
		t.Error(got)
	}
	must.Do(t, os.MkdirAll("cmd/headrace", 0o700))
	if got := world.CalledAs(built); got != "go run ./cmd/headrace" {
		t.Error(got)
	}
	if got := world.CalledAs("./headrace"); got != "./headrace" {
		t.Error(got)
	}
}

// The version is what the build knows.
func TestVersionLine(t *testing.T) {
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := versionLine("v1.2.3", info); !strings.HasPrefix(got, "headrace v1.2.3 commit abc (with changes) go1.") {
		t.Error(got)
	}
	if got := versionLine("(unknown)", nil); !strings.HasPrefix(got, "headrace (unknown) go1.") {
		t.Error(got)
	}
}
