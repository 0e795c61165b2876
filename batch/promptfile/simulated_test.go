package promptfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// Simulated answers never stand in for real ones, nor real ones for simulated: not in
// the output, not in the errors file, not where bad lines are skipped, and whatever the
// order of results. What is refused stays as it is; to go on in the same way is fine.
func TestSimulatedAndRealNeverMix(t *testing.T) {
	answers := map[string]func(*Item) (provider.Reply, error){
		"results":  func(*Item) (provider.Reply, error) { return good, nil },
		"failures": func(*Item) (provider.Reply, error) { return provider.Reply{}, batch.Permanent(errors.New("no")) },
	}
	for what, answer := range answers {
		for _, simulated := range []bool{true, false} {
			for _, inOrder := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, simulated %t, in order %t", what, simulated, inOrder), func(t *testing.T) {
					d := newFixture(t, ask("a"), "[]", ask("b"))
					d.answer, d.cfg.Simulated, d.cfg.SkipBad, d.cfg.InputOrder = answer, simulated, true, inOrder
					d.mixes()
				})
			}
		}
	}
}

func (d *jobFixture) mixes() {
	d.t.Helper()
	if sums, _, err := d.run(); err != nil || sums.Skipped != 1 {
		d.t.Fatalf("%+v, %v", sums, err)
	}
	if sums, asked, err := d.run(); err != nil || asked != "" || sums.EarlierDone+sums.EarlierFailed != 3 {
		d.t.Errorf("gone on in the same way: %q, %+v, %v", asked, sums, err)
	}
	before := d.files()
	d.cfg.Simulated = !d.cfg.Simulated
	want := ErrSimulated
	if d.cfg.Simulated {
		want = ErrReal
	}
	if _, err := Open(d.cfg); !errors.Is(err, want) {
		d.t.Errorf("gone on in the other way: %v", err)
	}
	if d.files() != before {
		d.t.Error("a file was changed")
	}
	d.cfg.Fresh = true
	if sums, asked, err := d.run(); err != nil || asked != "a b" {
		d.t.Errorf("started over: %q, %+v, %v", asked, sums, err)
	}
}

// files returns the content of the output and of its errors file.
func (d *jobFixture) files() string {
	d.t.Helper()
	var all string
	for _, name := range []string{d.out, journal.ErrorsPath(d.out)} {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			d.t.Fatal(err)
		}
		all += string(text) + "\x00"
	}
	return all
}

// A run to standard output takes nothing over from an errors file: what another run has left
// there, simulated or not, does not keep it from running. A run to a file asks only about
// lines of its own output.
// A file that holds answers of both sorts goes on with neither: one made-up line, or one real line, is enough.
func TestAFileOfBothSortsIsRefused(t *testing.T) {
	d := newFixture(t, ask("a"))
	var text []byte
	for i, simulated := range []bool{true, false} {
		l := journal.LineOf(fmt.Sprint(i), journal.Headrace{Key: fmt.Sprintf("%032d", i), Simulated: simulated})
		l.Response = &journal.Response{StatusCode: 200, Body: good.Body}
		text = journal.AppendLine(text, &l)
	}
	write(t, d.out, string(text))
	in := must.Get(File(d.in))(t)
	for simulated, want := range map[bool]error{false: ErrSimulated, true: ErrReal} {
		if _, err := Open(Config{Input: in, Output: d.out, Simulated: simulated}); !errors.Is(err, want) {
			t.Errorf("simulated %t: %v", simulated, err)
		}
	}
}

// The errors file alone is enough to refuse: a run to standard output has no other.
func TestSimulatedErrorsBesideStandardOutput(t *testing.T) {
	d := newFixture(t, ask("a"))
	l := journal.LineOf("a", journal.Headrace{Key: "00112233445566778899aabbccddeeff", Simulated: true})
	l.Error = &journal.Failure{Code: "invalid"}
	name := journal.ErrorsPath(d.out)
	write(t, name, string(journal.AppendLine(nil, &l)))
	in := must.Get(File(d.in))(t)
	other := filepath.Join(d.dir, "other.jsonl")
	for _, c := range []struct {
		of   string // the output that the line names
		cfg  Config
		want error
	}{
		{"", Config{Stdout: os.Stdout}, nil},
		{"-", Config{Stdout: os.Stdout}, nil},
		{"", Config{Output: d.out}, ErrSimulated},
		{"", Config{Output: other}, ErrSimulated},
		{"out.jsonl", Config{Output: d.out}, ErrSimulated},
		{"out.jsonl", Config{Output: other}, nil},
		{"other.jsonl", Config{Output: other}, ErrSimulated},
		{"out.jsonl", Config{Output: other, Simulated: true}, nil},
	} {
		l.Headrace.Output = c.of
		write(t, name, string(journal.AppendLine(nil, &l)))
		c.cfg.Input, c.cfg.Errors = in, name
		job, err := Open(c.cfg)
		if !errors.Is(err, c.want) {
			t.Errorf("a line of %q, output %q: %v", c.of, c.cfg.Output, err)
		}
		if err == nil && job.Close() != nil {
			t.Error("it cannot be closed")
		}
	}
}
