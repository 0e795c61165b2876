package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/bus"
)

// patience bounds the wait of a test for what must come.
const patience = time.Minute

// serves starts a hub, and gives what it said once it serves and what ends it.
func (h *here) serves(flags string) (text string, end func()) {
	h.t.Helper()
	signals, over, errs := make(chan os.Signal, 1), make(chan int, 1), &said{}
	ready := filepath.Join(h.dir, "ready")
	_ = os.Remove(ready)
	go func() {
		over <- h.run("hub --store {}/home --listen 127.0.0.1:0 --ready-file {}/ready "+flags, errs, errs, signals)
	}()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		if strings.Contains(errs.String(), "the hub serves") || len(over) > 0 {
			break
		}
	}
	return errs.String(), func() {
		signals <- os.Interrupt
		if code := <-over; code != 0 {
			h.t.Errorf("the hub ends with %d: %s", code, errs)
		}
	}
}

// A hub prints its tokens when it makes them, and never again; they are in files for their owner alone, in the folder for
// states. A hub that began in the cache folder goes on there.
func TestAHubPrintsItsTokensOnce(t *testing.T) {
	h := newHere(t)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(h.dir, "cache"))
	h.env["XDG_STATE_HOME"] = filepath.Join(h.dir, "state")
	dir := filepath.Join(h.dir, "state", "headrace-hub")
	first, end := h.serves("")
	end()
	secrets := map[bus.Role]string{}
	for _, r := range bus.Roles {
		path := filepath.Join(dir, "join-"+string(r))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		secrets[r] = strings.TrimSpace(string(text))
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		if !strings.Contains(first, "'"+secrets[r]+"'") {
			t.Errorf("%s is not printed at first: %s", r, first)
		}
	}
	again, end := h.serves("")
	for r, line := range secrets {
		token, _, _ := strings.Cut(strings.TrimPrefix(line, "nats://"), "@")
		if strings.Contains(again, token) {
			t.Errorf("the token of %s is printed again: %s", r, again)
		}
	}
	if !strings.Contains(again, dir) {
		t.Errorf("no folder is named: %s", again)
	}
	h.env["HEADRACE_CLUSTER"] = secrets[bus.WatchRole]
	h.must(0, "jobs ls")
	h.must(2, "worker", "permits only watching", "take the line of a worker")
	if err := os.WriteFile(filepath.Join(h.dir, "in.jsonl"), []byte("{\"prompt\":\"a\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(2, "submit {}/in.jsonl -o {}/out.jsonl", "permits only watching")
	for _, r := range []bus.Role{bus.WatchRole, bus.WorkRole} { // no keeper is there: the store alone would take it
		h.env["HEADRACE_CLUSTER"] = secrets[r]
		h.must(2, "limits set org --rpm 60", "does not permit setting limits", "join-admin")
		h.must(2, "limits reset org", "does not permit setting limits")
	}
	h.env["HEADRACE_CLUSTER"] = secrets[bus.AdminRole]
	h.must(0, "limits set org --rpm 60", "limit org is set")
	h.must(0, "limits reset org", "the keeper has been asked to reset limit org")
	end()

	if err := os.MkdirAll(filepath.Join(h.dir, "cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, filepath.Join(h.dir, "cache", "headrace-hub")); err != nil {
		t.Fatal(err)
	}
	old, end := h.serves("")
	end()
	if !strings.Contains(old, filepath.Join(h.dir, "cache", "headrace-hub")) {
		t.Errorf("a hub of before does not go on: %s", old)
	}
}

// A reader of --ready-file never takes the line of an earlier start for that of this one: the file is gone once the hub has
// its folder, before it serves. A hub that does not get its folder leaves the file of the hub that serves.
func TestReadyFileIsOfThisStart(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	ready := filepath.Join(h.dir, "ready")
	start := func() (*bus.Hub, error) {
		f := &hubFlags{listen: "127.0.0.1:0", home: h.dir, dir: filepath.Join(h.dir, "dir"), ready: ready}
		return f.start(h.world(nil, &said{}, &said{}), &speaker{out: &said{}})
	}
	h.write("ready", "an earlier line")
	hub, err := start()
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Shutdown()
	if _, err := os.Stat(ready); !os.IsNotExist(err) {
		t.Errorf("the line of an earlier start is still there: %v", err)
	}
	h.write("ready", "the line")
	if second, err := start(); err == nil {
		second.Shutdown()
		t.Fatal("two hubs have one folder")
	}
	if _, err := os.Stat(ready); err != nil {
		t.Errorf("a hub without a folder took the line of another: %v", err)
	}
}

// Three hubs do not make three tokens: without a shared one none begins, and hub init makes it.
func TestThreeHubsShareAToken(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	const three = " --listen 127.0.0.1:0 --route 127.0.0.1:1 --peers 127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
	h.must(2, "hub --dir {}/a"+three, "the three hubs must share a token", "headrace hub init")
	h.must(0, "hub init {}/shared", "--tls-dir")
	before, err := os.ReadFile(filepath.Join(h.dir, "shared", "token"))
	if err != nil || len(before) < bus.MinToken {
		t.Fatalf("%d bytes, %v", len(before), err)
	}
	h.must(0, "hub init {}/shared")
	if after, err := os.ReadFile(filepath.Join(h.dir, "shared", "token")); string(after) != string(before) || err != nil {
		t.Errorf("the token is another one: %v", err)
	}
}
