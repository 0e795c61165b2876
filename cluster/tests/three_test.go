package tests

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Three hubs are made as the documentation says, without Kubernetes: the first is started once, its folder goes to all three, and
// the line that one prints leads to all of them when it names them. One of them may die then.
func TestThreeHubsByHand(t *testing.T) {
	t.Parallel()
	const items = 300
	f := unstarted(t, plan{hubs: 3, inFlight: 16, provider: slow})
	f.command = command(t)
	first := filepath.Join(f.dir, "first")
	listen := func() string { return everywhere(freePort(t)) }
	ready := filepath.Join(f.dir, "first.ready")
	once := &hub{process: f.process("first", "hub", "--store", f.store, "--listen", listen(), "--dir", first, "--ready-file", ready), dir: first, ready: ready}
	once.start()
	once.serves()
	once.signal(syscall.SIGTERM)
	if code := once.ends(comeUp); code != 0 {
		t.Fatalf("the first hub ends with %d", code)
	}
	if err := os.RemoveAll(filepath.Join(first, "jetstream")); err != nil {
		t.Fatal(err)
	}
	var routes []string
	for range 3 {
		routes = append(routes, freePort(t))
	}
	for n, name := range []string{"a", "b", "c"} {
		dir := filepath.Join(f.dir, name)
		if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		h := &hub{dir: dir, ready: filepath.Join(f.dir, name+".ready")}
		h.process = f.process(name, "hub", "--store", f.store, "--listen", listen(), "--route", everywhere(routes[n]), "--peers", strings.Join(routes, ","),
			"--name", name, "--advertise", "127.0.0.1", "--dir", dir, "--ready-file", h.ready)
		f.hubs = append(f.hubs, h)
	}
	f.eachHubServes()
	if line := f.url(); !strings.Contains(line, "ca=sha256:") {
		t.Fatalf("the line names no authority: %s", line)
	}
	w := f.newWorker("worker")
	f.workers = append(f.workers, w)
	w.start()
	customer, output := f.customer(writePrompts(t, f.dir, "three", items), "out")
	<-f.judge.after(items / 10)
	f.hubs[1].struck = true
	f.hubs[1].kill()
	if code := f.finishes(customer); code != 0 || linesOf(t, output) != items {
		t.Errorf("exit %d, %d results", code, linesOf(t, output))
	}
}
