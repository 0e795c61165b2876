package bus

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A line names files, and gives them again as it got them: also where it is shown to people.
func TestALineNamesFiles(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"nats://h:4222?creds=%2Fetc%2Fa+b.creds", "nats://h:4222?nkey=%2Fetc%2Fseed.nk&space=two", "nats://h:4222?cert=c.pem&key=k.pem&ca=%2Fetc%2Fca.pem",
	} {
		a := parsed(t, line)
		if a.CA != "" || a.Cert != "" {
			if !a.TLS {
				t.Errorf("%s: no TLS", line)
			}
		}
		if again := parsed(t, a.String()); !reflect.DeepEqual(again, a) {
			t.Errorf("%s: %+v is read as %+v", line, a, again)
		}
		if a.Redacted() != a.String() {
			t.Errorf("%s is shown as %s", line, a.Redacted())
		}
	}
}

// A file that is not there, or is not what it should be, is named at once.
func TestFilesThatAreWrong(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, says := range map[string]string{
		"nats://h?creds=/no.creds":          "creds: stat /no.creds: no such file",
		"nats://h?nkey=/no.nk":              "nkey /no.nk: ",
		"nats://h?nkey=" + bad:              "nkey " + bad,
		"nats://h?cert=/no.pem&key=/no.key": "cert /no.pem: open /no.pem: no such file",
		"nats://h?cert=/no.pem":             "cert and key go together",
		"nats://h?ca=/no.pem":               "ca: open /no.pem: no such file",
		"nats://h?ca=" + bad:                "it has no certificate in PEM",
		"nats://h?ca=123456":                "no fingerprint",
		"nats://h?password=1":               `unknown "password" in the join line: want ca, space, creds, nkey, cert or key`,
	} {
		if err := tryConnect(t, line); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}
