package account

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/auth"
)

// A state contains neither the key nor any part of the address other than its host. Another
// key or path has another fingerprint, except for one in 256, and so a fingerprint confirms
// no guess.
func TestFingerprintGivesNothingAway(t *testing.T) {
	prints := map[string]int{}
	for i := range 2560 {
		r := backendWith(t, strings.Repeat("k", i))
		r.flags.BaseURL = "http://bob:secret@host/path-secret/?k=secret"
		server, mark := r.ServerOf()
		if server != "openai at http://host" || len(mark) != 2 {
			t.Fatalf("%q %q", server, mark)
		}
		prints[mark]++
	}
	for mark, n := range prints {
		if n > 40 || len(prints) < 200 {
			t.Errorf("%d of 2,560 keys have the fingerprint %s, of %d that there are", n, mark, len(prints))
		}
	}
	for base, want := range map[string]string{"": "openai", "https://api.openai.com/v1": "openai", "http://127.0.0.1:8080/v1/": "openai at http://127.0.0.1:8080"} {
		r := &Account{flags: &settings.Flags{InputFlags: settings.InputFlags{VendorFlags: settings.VendorFlags{BaseURL: base}}}, Name: "openai"}
		if server, _ := r.ServerOf(); server != want {
			t.Errorf("%s: %s, want %s", base, server, want)
		}
	}
}

// Of what is no key the place counts where it comes from, and not what it is today: a file
// has another key in it tomorrow, and the same account.
func TestFingerprintOfAKeyFile(t *testing.T) {
	dir, prints := t.TempDir(), map[string]bool{}
	for i := range 16 {
		path := filepath.Join(dir, fmt.Sprint("key-", i))
		mark := ""
		for _, key := range []string{"sk-first-0123456789", "sk-second-0123456789"} {
			must.Do(t, os.WriteFile(path, []byte(key), 0o600))
			file := must.Get(auth.NewFile(path, auth.Authorization, auth.BearerPrefix))(t)
			r := &Account{flags: &settings.Flags{}, Name: "x", proof: file, Proven: path}
			_, got := r.ServerOf()
			if mark != "" && got != mark {
				t.Errorf("%s: %s was %s", key, got, mark)
			}
			mark = got
		}
		prints[mark] = true
	}
	if len(prints) < 8 {
		t.Errorf("16 files have %d fingerprints", len(prints))
	}
}

// The limits of one organisation, or project, are not those of another with the same key.
func TestFingerprintOfAnOrganisation(t *testing.T) {
	prints := map[string]bool{}
	for i := range 16 {
		b := backendWith(t, testKey)
		if b.accountHeaders = []string{fmt.Sprint("OpenAI-Organization: org-", i)}; i == 0 {
			b.accountHeaders = nil
		}
		_, mark := b.ServerOf()
		prints[mark] = true
	}
	if len(prints) < 8 {
		t.Errorf("16 organisations have %d fingerprints", len(prints))
	}
}

// Calls have a file each, and 32 are left to the process: no call more, none less, and never
// no call at all.
func TestCallsWithinOpenFiles(t *testing.T) {
	for _, c := range []struct {
		limit       uint64
		asked, want int
	}{{0, 500, 500}, {96, 64, 64}, {95, 64, 63}, {97, 64, 64}, {80, 500, 48}, {33, 8, 1}, {32, 8, 1}, {3, 8, 1}, {33, 1, 1}} {
		if got := CallsWithin(c.limit, c.asked); got != c.want {
			t.Errorf("of %d calls %d may be made where %d files may be open, want %d", c.asked, got, c.limit, c.want)
		}
	}
}
