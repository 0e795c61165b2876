package exit

import "testing"

// What is shown of addresses in settings has no user, no password and no key.
func TestAddressesWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"https://ann:pass@host.example/v1":            "https://[redacted]@host.example/v1",
		"HTTPS://pass@host.example":                   "HTTPS://[redacted]@host.example",
		"https://host.example/v1?a=b&api-key=xyz&c=d": "https://host.example/v1?a=b&api-key=[redacted]&c=d",
		"https://host.example/api?code=xyz#there":     "https://host.example/api?code=[redacted]#there",
		"nats://token@host:4222":                      "nats://[redacted]@host:4222",
		"https://host.example/v1/@cf/a?model=b":       "https://host.example/v1/@cf/a?model=b",
		"ann@example.com, see https://host.example":   "ann@example.com, see https://host.example",
	} {
		if got := WithoutSecrets(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
