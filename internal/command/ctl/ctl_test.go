package ctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/socket"
	"github.com/headrace/headrace/internal/must"
)

// Words that can be meant are understood, and all others are refused with what is allowed.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "status",
		"pause":                           "pause",
		"concurrency 8":                   "concurrency 8",
		"limit rpm=500 tpm=2e4":           "limit rpm=500 tpm=20000",
		"limit openai/gpt-4o input-tpm=0": "limit openai/gpt-4o none",
		"max-cost $5.50":                  "max-cost 5.5",
		"reset":                           "reset",
		"reset a/b":                       "reset a/b",
		"log-level DEBUG":                 "log-level DEBUG",
		"report x.html":                   "report x.html",

		"puase":              `unknown word "puase": did you mean pause? want status`,
		"pause now":          `pause: "now" is too much: want pause`,
		"concurrency":        "concurrency: want concurrency N",
		"concurrency 0":      "want a number from 1 to 65536",
		"concurrency 1e3":    "want a number from 1 to 65536",
		"limit":              "limit: want limit [LANE] rpm=N",
		"limit a":            "want at least one of rpm=N",
		"limit rpm":          "want at least one of rpm=N",
		"limit rpm=-1":       "want a number a minute",
		"limit rpm=Inf":      "want a number a minute",
		"limit rpm=NaN":      "want a number a minute",
		"limit rpm=1 rpm=2":  "is given twice",
		"limit a b rpm=1":    `limit "b" is not known`,
		"limit rps=1":        `limit "rps=1" is not known: want rpm=N, tpm=N`,
		"max-cost 0":         "want USD, more than 0",
		"max-cost 1 2":       `max-cost: "2" is too much: want max-cost USD`,
		"log-level loud":     "want debug, info, warn or error",
		"log-level warn+2":   "want debug, info, warn or error",
		"report":             "report: want report FILE",
		"status --json more": `status: "--json" is too much: want status`,
	} {
		c, err := Parse(strings.Fields(text))
		got := strings.TrimSpace(c.Word + " " + c.Lane)
		switch {
		case err != nil:
			got = err.Error()
		case c.Word == Concurrency:
			got += fmt.Sprint(" ", c.N)
		case c.Word == Limit:
			got += " " + LimitWords(c.On(batch.Limits{}))
		case c.Word == MaxCost:
			got += fmt.Sprint(" ", c.USD)
		case c.Word == LogLevel:
			got += " " + c.Level.String()
		case c.Word == Report:
			got += " " + c.File
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A limit that is not named keeps its value.
func TestLimitsAreMerged(t *testing.T) {
	c := must.Get(Parse([]string{Limit, "rpm=0", "output-tpm=7"}))(t)
	if got := c.On(batch.Limits{RPM: 5, TPM: 6}); got != (batch.Limits{TPM: 6, OutputTPM: 7}) {
		t.Errorf("%+v", got)
	}
}

// FuzzParse: no words make it panic, and what it takes it takes again.
func FuzzParse(f *testing.F) {
	f.Add("limit a rpm=1")
	f.Fuzz(func(t *testing.T, text string) {
		list := strings.Split(text, " ")
		c, err := Parse(list)
		if again, twice := Parse(list); (err == nil) != (twice == nil) || fmt.Sprint(c) != fmt.Sprint(again) {
			t.Errorf("%q: %v %v", text, err, twice)
		}
	})
}

// A tell passes on the commands that it gets.
type tell struct{ told chan Command }

func (s tell) Do(_ context.Context, c Command) (Answer, error) {
	if c.Word == Drain {
		return Answer{}, errors.New("not now")
	}
	if s.told != nil {
		s.told <- c
	}
	return Answer{Text: "did " + c.Word}, nil
}

// A command reaches the run of its output, from another folder and through a link, and no other. After the end there is
// nobody.
func TestServeAndSend(t *testing.T) {
	folder, home := shortFolder(t), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(home, link))
	name := must.Get(OfFile(filepath.Join(home, "r.jsonl")))(t)
	s := must.Get(Serve(folder, tell{}, name))(t)
	t.Chdir(home)
	for _, file := range []string{"r.jsonl", "./x/../r.jsonl", filepath.Join(link, "r.jsonl")} {
		a, err := Send(t.Context(), folder, must.Get(OfFile(file))(t), []string{Pause})
		if err != nil || a.Text != "did pause" {
			t.Errorf("%s: %+v %v", file, a, err)
		}
	}
	if _, err := Send(t.Context(), folder, name, []string{Drain}); err == nil || err.Error() != "not now" {
		t.Error(err)
	}
	if _, err := Send(t.Context(), folder, name, []string{"dance"}); err == nil || !strings.Contains(err.Error(), "unknown word") {
		t.Error(err)
	}
	if _, err := Send(t.Context(), folder, must.Get(OfFile("s.jsonl"))(t), nil); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, err := Serve(folder, tell{}, name); !errors.Is(err, socket.ErrInUse) {
		t.Errorf("a second run of the same output: %v", err)
	}
	must.Do(t, s.Close())
	if _, err := Send(t.Context(), folder, name, nil); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if left := must.Get(os.ReadDir(folder))(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The socket that a killed run has left is no obstacle, and the next run removes those of other outputs, too. The folder
// is the user's own.
func TestLeftSockets(t *testing.T) {
	folder := shortFolder(t)
	must.Do(t, os.Chmod(folder, 0o755))
	for _, name := range []string{socketName("a"), socketName("b"), socketName("c") + ".new"} { // the last was killed before it was ready
		ln := must.Get(net.Listen("unix", filepath.Join(folder, name)))(t)
		ln.(*net.UnixListener).SetUnlinkOnClose(false)
		must.Do(t, ln.Close())
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "ctl-note.sock"), []byte("mine"), 0o600))
	s := must.Get(Serve(folder, tell{}, socketName("a")))(t)
	defer func() { _ = s.Close() }()
	var names []string
	for _, e := range must.Get(os.ReadDir(folder))(t) {
		names = append(names, e.Name())
	}
	if want := fmt.Sprint([]string{socketName("a"), "ctl-note.sock"}); fmt.Sprint(names) != want {
		t.Errorf("%v, want %v", names, want)
	}
	if mode := must.Get(os.Stat(folder))(t).Mode().Perm(); mode != 0o700 {
		t.Errorf("the folder has mode %o", mode)
	}
	if mode := must.Get(os.Stat(filepath.Join(folder, socketName("a"))))(t).Mode().Perm(); mode != 0o600 {
		t.Errorf("the socket has mode %o", mode)
	}
}

// Where the folder's name is too long for a socket, both sides use one with a short name.
func TestLongFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	must.Do(t, os.Mkdir(folder, 0o700))
	name := socketName(t.Name() + folder)
	s := must.Get(Serve(folder, tell{}, name))(t)
	if a, err := Send(t.Context(), folder, name, nil); err != nil || a.Text != "did status" {
		t.Errorf("%+v %v", a, err)
	}
	must.Do(t, s.Close())
}

// A folder of another user, or a link, gets no socket.
func TestForeignFolder(t *testing.T) {
	base := shortFolder(t)
	link := filepath.Join(base, "l")
	must.Do(t, os.Symlink(t.TempDir(), link))
	if _, err := Serve(link, tell{}, socketName("a")); err == nil {
		t.Error("a link was taken")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	foreign := filepath.Join(base, "f")
	must.Do(t, errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 12345, 12345)))
	if _, err := Serve(foreign, tell{}, socketName("a")); err == nil {
		t.Error("the folder of another user was taken")
	}
	if _, err := Send(t.Context(), foreign, socketName("a"), nil); err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "f: it belongs to another user") {
		t.Errorf("it does not say whose folder it is: %v", err)
	}
}

// The words for an address mean the same server.
func TestAddresses(t *testing.T) {
	want := OfAddress("http://127.0.0.1:8470")
	for _, at := range []string{"127.0.0.1:8470", "localhost:8470", "http://localhost:8470/", ":8470", "0.0.0.0:8470", "http://[::]:8470"} {
		if !isAddress(at) || OfAddress(at) != want {
			t.Errorf("%s is another address", at)
		}
	}
	t.Chdir("/")
	if OfAddress("unix:tmp/../s.sock") != OfAddress("unix:/s.sock") {
		t.Error("a socket has another name from its folder")
	}
	for _, file := range []string{"results.jsonl", "a:b", "/x/y.state.json", "c:\\r.jsonl"} {
		if isAddress(file) {
			t.Errorf("%s is taken for an address", file)
		}
	}
}

// shortFolder returns a folder whose name leaves room for a socket.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder := must.Get(os.MkdirTemp("", "ctl"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// A run that does not answer, such as one that was stopped, is said to be that, in words.
func TestNoAnswer(t *testing.T) {
	folder := shortFolder(t)
	ln := must.Get(net.Listen("unix", filepath.Join(folder, socketName("a"))))(t)
	defer func() { _ = ln.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Send(ctx, folder, socketName("a"), nil); err == nil || !strings.HasPrefix(err.Error(), "it does not answer within") {
		t.Error(err)
	}
}
