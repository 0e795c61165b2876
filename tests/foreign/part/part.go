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

// readyWithin is long for a server that has to print one line: the machine may be busy.
const readyWithin = 2 * time.Minute

// File returns a file that the script has put there, or made. A test of a missing file is
// skipped; with FOREIGN_MUST=1, as in CI, the file must be there.
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

// Server returns a server that the script has built, or skips the test: a build takes too
// long to demand it.
func Server(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(Headrace(t)), name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not built: tests/foreign/run builds it", name)
	}
	return path
}

// Headrace returns the command as it was built.
func Headrace(t *testing.T) string {
	t.Helper()
	return File(t, "bin", "headrace")
}

// Short reports whether there is little time.
func Short() bool { return os.Getenv("FOREIGN_SHORT") == "1" }

// Node returns one of the programs of the folder node, for Serve.
func Node(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	File(t, "node", "node_modules")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err) // node installed these modules, so it must be there
	}
	return Command(t, append([]string{node, File(t, "node", program)}, args...)...)
}

// Command returns a process that ends with the test: it is asked to, and killed if it does
// not.
func Command(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Serve starts a server and waits for a line with a word in it: the text after the word is
// its address. If the test fails, it shows the server's output.
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
		_ = cmd.Wait() // its end is no news, as the test asked for it
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

// follow copies a server's output to log until its end, so that the server never waits for a
// reader. It sends the first address that it finds, or closes the channel if none has come.
func follow(r io.Reader, log *bytes.Buffer, word string, address chan<- string) {
	const line = 1 << 20
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, line)
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		_, rest, _ := strings.Cut(lines.Text(), word)
		if named := strings.Fields(rest); len(named) > 0 && address != nil {
			address <- named[0]
			address = nil
		}
	}
	_, _ = io.Copy(io.Discard, r)
	if address != nil {
		close(address)
	}
}
