package part

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// readyWithin is long for a server that has to say one line: the machine may be busy.
const readyWithin = 2 * time.Minute

// File is a file that the script has put there, or made. What could not be had is skipped;
// with FOREIGN_MUST=1, as in CI, it must be there.
func File(t *testing.T, path ...string) string {
	t.Helper()
	dir := os.Getenv("FOREIGN")
	if dir == "" {
		t.Skip("needs what others wrote: tests/foreign/run fetches and starts it")
	}
	name := filepath.Join(append([]string{dir}, path...)...)
	if _, err := os.Stat(name); err != nil {
		if os.Getenv("FOREIGN_MUST") == "1" {
			t.Fatalf("%s is not here, and FOREIGN_MUST=1", filepath.Join(path...))
		}
		t.Skipf("%s is not to be had here", filepath.Join(path...))
	}
	return name
}

// Server is a server that the script has built, or the test is skipped: to build one takes
// too long to demand it.
func Server(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(Headrace(t)), name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not built: tests/foreign/run builds it", name)
	}
	return path
}

// Headrace is the command as it was built.
func Headrace(t *testing.T) string {
	t.Helper()
	return File(t, "bin", "headrace")
}

// Short says that there is little time.
func Short() bool { return os.Getenv("FOREIGN_SHORT") == "1" }

// Node is one of the programs of the folder node, to be served.
func Node(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	File(t, "node", "node_modules")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err) // what there is of npm came by it
	}
	return Command(t, append([]string{node, File(t, "node", program)}, args...)...)
}

// Command is a process that ends with the test: asked to, and killed if it does not.
func Command(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Serve starts a server and waits for a line with a word in it: what follows the word is
// its address. What it says before and after is shown if the test fails.
func Serve(t *testing.T, cmd *exec.Cmd, word string) string {
	t.Helper()
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var (
		reading sync.WaitGroup
		log     bytes.Buffer
	)
	address := make(chan string, 1)
	reading.Go(func() { follow(r, &log, word, address) })
	t.Cleanup(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait() // that it was told to end is no news
		_ = w.Close()
		reading.Wait()
		if t.Failed() {
			t.Logf("%s said: %s", filepath.Base(cmd.Path), log.Bytes())
		}
	})
	select {
	case a, ok := <-address:
		if !ok {
			t.Fatalf("%s ended before it listened", cmd.Path)
		}
		return a
	case <-time.After(readyWithin):
		t.Fatalf("%s does not listen after %v", cmd.Path, readyWithin)
	}
	return ""
}

func follow(r io.Reader, log *bytes.Buffer, word string, address chan<- string) {
	const line = 1 << 20
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, line)
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if _, rest, found := strings.Cut(lines.Text(), word); found && address != nil {
			address <- strings.Fields(rest)[0]
			address = nil
		}
	}
	_, _ = io.Copy(io.Discard, r)
	if address != nil {
		close(address)
	}
}
