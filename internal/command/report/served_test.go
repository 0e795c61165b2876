package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// serving is a server of ten seconds, with two clients.
func serving() *Serving {
	s := NewServing("openai", false, began)
	for k := range 10 {
		s.Note(&Request{Client: "alice", Class: "interactive", Lane: "openai/m", Waited: 100 * time.Millisecond, First: 300 * time.Millisecond, USD: 0.25, Priced: true, Called: true})
		s.Note(&Request{Client: "bob", Class: "batch", Lane: "openai/m", Waited: 4 * time.Second, First: 5 * time.Second, Called: true})
		switch k {
		case 7:
			s.Note(&Request{Client: "bob", Class: "batch", Result: Refused, Code: "headrace_queue_full"})
			s.Note(&Request{Client: "bob", Class: "batch", Result: Gone})
			s.Note(&Request{Client: "alice", Class: "interactive", Lane: "openai/m", Result: Broken, Called: true})
		}
		s.Sample(began.Add(time.Duration(k+1)*time.Second), 2*k, k)
	}
	return s
}

// Each request is counted once, for its client, its class and its lane, with its wait and its cost.
func TestServed(t *testing.T) {
	r := serving().Report(began.Add(10*time.Second), Ended)
	if r.verdict() != "20 requests answered, 1 refused, 1 failed, 1 given up by their clients" || r.UpS != 10 || len(r.Samples) != 10 || r.Samples[7].Refused != 1 || r.Samples[9].Waiting != 18 {
		t.Errorf("%s: %+v", r.verdict(), r)
	}
	bob, alice := r.Clients[0], r.Clients[1]
	if bob.Name != "bob" || bob.Requests() != 12 || bob.Refused != 1 || bob.Gone != 1 || bob.Unpriced != 10 || bob.WaitP50S < 3.8 || bob.WaitP50S > 4.4 {
		t.Errorf("%+v", bob)
	}
	if alice.USD != 2.5 || alice.Failed != 1 || alice.Priced != 10 || alice.Unpriced != 0 || alice.FirstP95S < 0.28 || alice.FirstP95S > 0.32 {
		t.Errorf("%+v", alice)
	}
	if len(r.Classes) != 2 || len(r.Lanes) != 1 || r.Lanes[0].Requests() != 21 || r.Refusals[0] != (Refusal{"headrace_queue_full", 1}) {
		t.Errorf("%+v", r)
	}
	page, text := r.HTML(), r.Markdown()
	for _, part := range []string{"at least $2.50", "10 calls of unknown price not counted", "alice", "queue", "4.2 s", "unknown"} {
		if !strings.Contains(page, part) || !strings.Contains(text, part) {
			t.Errorf("no %q in %s", part, text)
		}
	}
	for _, title := range []string{"Requests a second", "Requests that wait", "Calls in flight", "How long a request waited", "Cost in USD", "The plots as a table"} {
		if !strings.Contains(page, title) {
			t.Errorf("no %s", title)
		}
	}
	if _, body := r.Live("requests of openai/m"); !strings.Contains(body, "this is its last state") || !strings.Contains(body, "Held by: <strong>requests of openai/m") {
		t.Error(body)
	}
}

// The figures next to a state are those that were written. A server that has stopped writing them was killed.
func TestServedFile(t *testing.T) {
	state := filepath.Join(t.TempDir(), "serve.state.json")
	must.Do(t, os.WriteFile(state, []byte(stateMark+"1}"), 0o600))
	now := began.Add(10 * time.Second)
	if _, err := readServed(state, now); err == nil || !strings.Contains(err.Error(), "there is no such file") {
		t.Error(err)
	}
	must.Do(t, CheckServed(state))
	wrote := serving().Report(now, Running)
	must.Do(t, wrote.Write(state))
	must.Do(t, wrote.Write(state))
	for _, file := range []string{state, ServedPath(state)} {
		r := must.Get(readServed(file, now.Add(killedAfter)))(t)
		if string(r.JSON()) != string(wrote.JSON()) || r.State != Running || strings.ReplaceAll(r.HTML(), r.At, "") != strings.ReplaceAll(wrote.HTML(), wrote.At, "") {
			t.Errorf("%s: %s", file, r.JSON())
		}
		if r = must.Get(readServed(file, now.Add(killedAfter+time.Second)))(t); r.State != Killed || !strings.Contains(r.Markdown(), "was killed") {
			t.Errorf("%s: %s", file, r.State)
		}
	}
	other := filepath.Join(t.TempDir(), "results.jsonl")
	must.Do(t, os.WriteFile(other, []byte(`{"custom_id":"a"}`), 0o600))
	if r, err := readServed(other, now); r != nil || err != nil {
		t.Errorf("an output was taken for a server: %v %v", r, err)
	}
	own := filepath.Join(t.TempDir(), "own.json")
	must.Do(t, os.WriteFile(own, small(t).report().JSON(), 0o600))
	if _, err := readServed(own, now); err == nil {
		t.Error("the report of an output was taken for a server's")
	}
	must.Do(t, os.WriteFile(ServedPath(state), []byte("mine"), 0o600))
	if err := CheckServed(state); err == nil {
		t.Error("a file of others would be replaced")
	}
}

// However many clients there are and however long it serves, the report is bounded, and hostile names are text.
func TestServedIsBounded(t *testing.T) {
	s := NewServing(evil, false, began)
	for k := range 20_000 {
		s.Note(&Request{Client: fmt.Sprint(k%200, evil), Class: "batch", Lane: fmt.Sprint(k%200, evil), Waited: time.Duration(k) * time.Millisecond, Called: true})
		s.Sample(began.Add(time.Duration(k+1)*time.Second), k%17, k%64)
	}
	r := s.Report(began.Add(20_000*time.Second), Running)
	all := 0
	for _, c := range r.Clients {
		all += c.Requests()
	}
	page := r.HTML()
	if all != 20_000 || len(r.Clients) != mostCounted+1 || len(page) > MaxBytes || len(r.JSON()) > 1<<20 || !json.Valid(r.JSON()) {
		t.Errorf("%d requests of %d clients, %d bytes, %d", all, len(r.Clients), len(page), len(r.JSON()))
	}
	for _, bad := range []string{"<script", "<img", "\x00", "\x1b", "\u202e", "http://"} {
		if strings.Contains(page, bad) || strings.Contains(r.Markdown(), bad) {
			t.Errorf("it has %q", bad)
		}
	}
}

// Requests that cost less than a tenth of a cent add up to what they cost, in each client's row and in the plot.
func TestServedCheapRequests(t *testing.T) {
	s := NewServing("openai", false, began)
	for k := range 900 {
		s.Note(&Request{Client: "alice", Lane: "openai/m", USD: 0.0004, Priced: true, Called: true})
		s.Sample(began.Add(time.Duration(k+1)*time.Second), 0, 0)
	}
	r := s.Report(began.Add(900*time.Second), Ended)
	sum := 0.0
	for _, one := range r.Samples {
		sum += one.USD
	}
	if fmt.Sprintf("%.4f %.4f", sum, r.Clients[0].USD) != "0.3600 0.3600" {
		t.Errorf("samples cost %v and the client %v, want 0.36", sum, r.Clients[0].USD)
	}
	one := NewServing("openai", false, began)
	one.Note(&Request{Client: "alice", USD: 0.0004, Priced: true, Called: true})
	if r := one.Report(began.Add(time.Second), Ended); r.Clients[0].USD != 0.0004 {
		t.Errorf("one request costs %v, want 0.0004", r.Clients[0].USD)
	}
}
