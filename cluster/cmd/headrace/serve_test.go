package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/exit"
)

// What cannot be used with --join, or without it, is refused before anything is reached.
func TestServeRefusesWhatAClusterCannotKeep(t *testing.T) {
	h := newHere(t)
	h.write("lanes.yaml", "lanes:\n  a: {provider: sim}\n  b: {provider: sim}\n")
	for line, says := range map[string]string{
		"serve --provider sim --weight 2":                                                    "--weight: only with --join",
		"serve --provider sim --store {}/home":                                               "--store: only with --join",
		"serve --provider sim --limit-name org":                                              "--limit-name: only with --join",
		"serve --provider sim --join nats://T@h --weight 0":                                  "--weight 0: it must be a number more than 0",
		"serve --provider sim --join nats://T@h --weight +Inf":                               "--weight +Inf: it must be a number more than 0",
		"serve --provider sim --join nats://T@h --keeper often":                              "--keeper: ",
		"serve --provider sim --join nats://T@h --lease 1ms":                                 "--lease 1ms: it must be 1s or more",
		"serve --provider sim --join nats://T@h --state {}/s.json":                           "--state: the keeper of a cluster keeps what is learned",
		"serve --provider sim --join nats://T@h --law none":                                  "--law none cannot be used in a cluster",
		"serve --config {}/lanes.yaml --join nats://T@h --limit-name org --addr 127.0.0.1:0": "--limit-name names the limit of one provider",
		"serve --provider sim --open --addr 127.0.0.1:0 --join=":                             "no cluster is named",
		"serve --provider sim --open --addr 127.0.0.1:0 --join nats://127.0.0.1:1":           "the join line does not say where the cluster's store is",
	} {
		h.must(exit.Usage, line, says)
	}
}

// A server that waits for a hub that is away ends by a signal, and that is no fault.
func TestServeEndsWhileItWaitsForItsHub(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	out, signals, over := &said{}, make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		over <- h.run("serve --provider sim --open --addr 127.0.0.1:0 --join nats://T@127.0.0.1:1 --store {}/home", out, out, signals)
	}()
	time.AfterFunc(100*time.Millisecond, func() { signals <- os.Interrupt })
	if code := <-over; code != 0 || strings.Contains(out.String(), "export ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
