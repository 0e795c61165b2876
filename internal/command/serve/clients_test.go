package serve

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

const (
	sumA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	sumB = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752" // of "test2"
)

func clientsIn(t *testing.T, text string) ([]door.Client, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clients.yaml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return readClients(path)
}

// Every word of a client is read, and those that are left out have their defaults.
func TestClientsOfAFile(t *testing.T) {
	all := must.Get(clientsIn(t, `# of the team
clients:
  alice:
    token-sha256: `+sumA+`
    weight: 3
    max-priority: normal
    max-waiting: 500
    max-in-flight: 8
    max-cost-per-day: 2.50
    max-cost-per-run: 100
    models: [gpt-5-mini, qwen3]
    may-name: true
    admin: true
  bob:
    token-sha256: "`+sumB+`"
`))(t)
	alice := all[0]
	if len(all) != 2 || alice.SHA256[0] != 0x9f || alice.SHA256[31] != 0x08 {
		t.Fatal(all)
	}
	alice.SHA256 = [32]byte{}
	want := door.Client{
		Name: "alice", Weight: 3, First: door.Normal, MaxWaiting: 500, MaxInFlight: 8, MaxCostDay: limiter.USD(2.5), MaxCostRun: limiter.USD(100),
		Models: []string{"gpt-5-mini", "qwen3"}, MayName: true, Admin: true,
	}
	if !reflect.DeepEqual(alice, want) {
		t.Errorf("got %+v\nwant %+v", alice, want)
	}
	bob := all[1]
	if bob.SHA256 = [32]byte{}; !reflect.DeepEqual(bob, door.Client{Name: "bob", Weight: 1}) {
		t.Errorf("got %+v", bob)
	}
}

// A file with a fault is refused with exit code 2 and one complaint, which has its line and advice, and never a token.
func TestFaultsOfClients(t *testing.T) {
	a := "    token-sha256: " + sumA + "\n"
	for _, c := range []struct{ text, line, want string }{
		{"", "1", "there are no clients"},
		{"# nothing\n", "1", "there are no clients"},
		{"alice: 1\n", "1", `unknown word "alice": write "clients:"`},
		{"clients: 3\n", "1", "clients is not a map of names"},
		{"clients:\n  alice:\n    weight: 2\n", "2", "client alice has no token: write its token-sha256"},
		{"clients:\n  al ice:\n" + a, "2", `"al ice" is not a name of a client`},
		{"clients:\n  " + strings.Repeat("a", 65) + ":\n" + a, "2", "is not a name of a client"},
		{"clients:\n  a:\n    token: hr-0123456789abcdef0123456789abcdef\n", "3", "no token belongs in this file"},
		{"clients:\n  a:\n    token-sha256: hr-0123456789abcdef0123456789abcdef\n", "3", `token-sha256: "[redacted]" is invalid: write the 64`},
		{"clients:\n  a:\n" + a + "    wieght: 2\n", "4", `unknown word "wieght": did you mean weight?`},
		{"clients:\n  a:\n" + a + "    weight: 0\n", "4", `weight: "0" is invalid: it may be a whole number from 1 to 1000`},
		{"clients:\n  a:\n" + a + "    weight: [1]\n", "4", "weight needs a single value"},
		{"clients:\n  a:\n" + a + "    max-priority: urgent\n", "4", "use interactive, normal, batch"},
		{"clients:\n  a:\n" + a + "    max-waiting: -1\n", "4", "it may be a whole number"},
		{"clients:\n  a:\n" + a + "    max-in-flight: 1.5\n", "4", "it may be a whole number"},
		{"clients:\n  a:\n" + a + "    max-cost-per-day: NaN\n", "4", "it may be a sum in USD"},
		{"clients:\n  a:\n" + a + "    max-cost-per-run: free\n", "4", "it may be a sum in USD"},
		{"clients:\n  a:\n" + a + "    models: {}\n", "4", "models is not a list of models"},
		{"clients:\n  a:\n" + a + "    may-name: yes\n", "4", "it may be true or false"},
		{"clients:\n  a:\n" + a + "  b:\n" + a, "4", "client b has the token of client a"},
		{"clients:\n  a:\n" + a + "  a:\n" + a, "4", ""},
		{"clients:\n  a: *x\n", "2", ""},
		{"clients:\n\t- [", "2", ""},
		{"a: 1\n---\nb: 2\n", "", ""},
	} {
		all, err := clientsIn(t, c.text)
		var end *exit.Ending
		if !errors.As(err, &end) || end.Code != exit.Usage {
			t.Errorf("%q: %v %v", c.text, all, err)
			continue
		}
		if text := end.Text; strings.Contains(text, "\n") || !strings.Contains(text, "clients.yaml:"+c.line) || !strings.Contains(text, c.want) || strings.Contains(text, "hr-0123") {
			t.Errorf("%q: %s", c.text, text)
		}
	}
	if _, err := readClients(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "--clients: ") {
		t.Error(err)
	}
}
